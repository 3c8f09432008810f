"""Intents: rows that stand before files, so that a crash between a file and its row leaves nothing behind.

An intent names a folder and has a lease, which this process renews while the folder is in use. Who fills the folder
closes the intent in the very transaction that writes the rows; where that never happens, `sweep` removes the folder
once the lease has run out, whatever process had it. A swept intent is claimed first: whoever comes late with its rows
is refused, and so no row ever names a removed file.
"""

import asyncio
import logging
from collections.abc import Sequence

from memory_gateway.blobs.port import BlobStore
from memory_gateway.gateway.attachments import store
from memory_gateway.kit.clock import Clock
from memory_gateway.kit.errors import StorageUnavailable
from memory_gateway.storage.port import Database, Transaction

LEASE_MS = 60_000
_RENEW_SECONDS = 20.0
_logger = logging.getLogger(__name__)


class FileIntents:
    """A folder is the prefix of what is stored in it, and belongs to one user."""

    def __init__(self, database: Database, clock: Clock, blobs: BlobStore) -> None:
        self._database = database
        self._clock = clock
        self._blobs = blobs
        self._in_use: set[tuple[str, str]] = set()
        self._renewal: asyncio.Task[None] | None = None

    async def open(self, user_id: str, folders: Sequence[str]) -> None:
        """Say that these folders are about to be filled."""

        async def work(transaction: Transaction) -> None:
            await transaction.execute_many(store.OPEN_INTENT, [self._params(user_id, folder) for folder in folders])

        await self._database.write(work, owner=user_id)
        self._in_use.update((user_id, folder) for folder in folders)
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.create_task(self._renew_while_in_use())

    async def close(self) -> None:
        """Stop renewing."""
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.gather(self._renewal, return_exceptions=True)

    async def keep_in(self, transaction: Transaction, user_id: str, folder: str) -> None:
        """The folder's rows are written in this transaction: it is no longer an intent."""
        if not await transaction.execute(store.KEEP_FILES, {"user_id": user_id, "folder": folder}):
            raise StorageUnavailable("the request took too long; nothing of it was stored")

    async def doom_in(self, transaction: Transaction, user_id: str, folder: str) -> None:
        """The folder's rows are removed in this transaction: `remove` it afterwards, or a sweep will."""
        await transaction.execute(store.DOOM_FILES, self._params(user_id, folder))

    async def abandon(self, user_id: str, folders: Sequence[str], *, twice: bool = False) -> None:
        """Remove the folders whose rows were not written; one that was kept meanwhile stays.

        ``twice``: something may still come to them, so a sweep removes them once more when the lease has run out.
        """
        self._in_use.difference_update((user_id, folder) for folder in folders)
        for folder in folders:
            if await self._claim(user_id, folder):
                await self.remove(user_id, folder, twice=twice)

    async def remove(self, user_id: str, folder: str, *, twice: bool = False) -> None:
        """Remove a claimed or doomed folder, then its intent. What cannot be removed now is left to a sweep."""
        try:
            await self._blobs.remove(folder)
        except StorageUnavailable:
            _logger.warning("could not remove %s now; a later sweep will", folder, exc_info=True)
        else:
            if not twice:
                await self._close(user_id, folder)

    async def forget_in(self, transaction: Transaction, user_id: str) -> None:
        """The user is erased: nothing of theirs can be kept any more, also what is under way."""
        await transaction.execute(store.FORGET_INTENTS, {"user_id": user_id})

    async def sweep(self) -> int:
        """Remove what expired intents left behind; how many folders that was."""
        now = self._clock()

        async def claim(transaction: Transaction) -> list[tuple[str, str]]:
            params = {"now_ms": now, "expires_at_ms": now + LEASE_MS}
            return [(user_id, folder) for user_id, folder in await transaction.fetch(store.CLAIM_EXPIRED, params)]

        claimed = await self._database.write(claim, owner=None)
        for user_id, folder in claimed:
            await self.remove(user_id, folder)
        return len(claimed)

    async def _renew_while_in_use(self) -> None:
        while self._in_use:
            await asyncio.sleep(_RENEW_SECONDS)
            try:
                gone = await self._renew(tuple(self._in_use))
                self._in_use -= gone
            except StorageUnavailable:
                _logger.warning("leases of files under way could not be renewed now", exc_info=True)

    async def _renew(self, in_use: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
        """Renew these; those that are no intents any more, because their rows are written or a sweep was quicker."""

        async def work(transaction: Transaction) -> set[tuple[str, str]]:
            return {
                (user_id, folder)
                for user_id, folder in in_use
                if not await transaction.execute(store.RENEW_INTENT, self._params(user_id, folder))
            }

        return await self._database.write(work, owner=None)

    async def _claim(self, user_id: str, folder: str) -> bool:
        async def work(transaction: Transaction) -> bool:
            return await transaction.execute(store.CLAIM, self._params(user_id, folder)) == 1

        return await self._database.write(work, owner=user_id)

    async def _close(self, user_id: str, folder: str) -> None:
        async def work(transaction: Transaction) -> None:
            await transaction.execute(store.CLOSE_INTENT, {"user_id": user_id, "folder": folder})

        await self._database.write(work, owner=user_id)

    def _params(self, user_id: str, folder: str) -> dict[str, object]:
        return {"user_id": user_id, "folder": folder, "expires_at_ms": self._clock() + LEASE_MS}
