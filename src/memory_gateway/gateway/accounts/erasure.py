"""Forgetting a user: the account is marked first, then everything goes, and a crash in between is made good.

The mark closes the door at once and stays for ever, so the id is never given out again. A request that was already
inside may still write; so everything is erased once more when no such request can be left (`_SETTLES_AFTER_MS`).
"""

import logging
from collections.abc import Sequence

from memory_gateway.blobs.port import BlobStore
from memory_gateway.gateway.accounts import store
from memory_gateway.gateway.accounts.participants import Participant
from memory_gateway.gateway.accounts.schemas import ErasedUser, UpstreamErasure
from memory_gateway.gateway.accounts.user_ids import check_user_id
from memory_gateway.gateway.audit.service import Audit
from memory_gateway.kit.clock import Clock, rfc3339
from memory_gateway.kit.errors import MemoryGatewayError, NotFound
from memory_gateway.storage.port import Database, Row, Transaction
from memory_gateway.upstream.port import Erasure, Upstream

_logger = logging.getLogger(__name__)
_SETTLES_AFTER_MS = 60 * 60 * 1000


class UserErasure:
    """Erases users from the upstream, the rooms' tables and the file store. Every step may be done twice."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        participants: Sequence[Participant],
        upstream: Upstream,
        blobs: BlobStore,
    ) -> None:
        self._database = database
        self._clock = clock
        self._audit = Audit(database, clock)
        self._participants = (*participants, self._audit)
        self._upstream = upstream
        self._blobs = blobs

    async def erase(self, user_id: str, *, by: str | None = None) -> ErasedUser:
        """Forget the user. `NotFound` for an unknown one; an erased one is erased again.

        ``by`` is who asked, for the audit log: the user unless said otherwise. When the upstream fails, its error
        passes through, the account stays closed, and asking again or `resume_erasures` goes on from there.
        """
        await self._mark(user_id, by or user_id)
        upstream = await self._clear(user_id)
        await self._database.scrub()
        await self._stamp(store.MARK_CLEARED, user_id)
        return ErasedUser(user_id, erased=True, upstream=UpstreamErasure(upstream.erased, upstream.remaining))

    async def resume_erasures(self) -> None:
        """Finish what was interrupted and sweep what late requests left. Call it at start-up and every few minutes."""
        settles_at = rfc3339(self._clock() - _SETTLES_AFTER_MS)
        cleared: list[Row] = []
        for user_id, cleared_at in await self._unfinished(settles_at):
            try:
                await self._clear(user_id)
            except MemoryGatewayError:
                _logger.warning("the erasure of a user is not finished; it goes on later", exc_info=True)
            else:
                cleared.append((user_id, cleared_at))
        if cleared:
            await self._database.scrub()  # once for all: it takes as long for one as for many
        for user_id, cleared_at in cleared:
            await self._stamp(store.MARK_CLEARED if cleared_at is None else store.MARK_SETTLED, user_id)

    async def _unfinished(self, settles_at: str) -> list[Row]:
        async def work(transaction: Transaction) -> list[Row]:
            return await transaction.fetch(store.UNFINISHED_ERASURES, {"settles_at": settles_at})

        return await self._database.read(work)

    async def _mark(self, user_id: str, by: str) -> None:
        marked = {"user_id": user_id, "now": rfc3339(self._clock())}

        async def work(transaction: Transaction) -> None:
            if await transaction.fetch_one(store.FIND_USER, {"user_id": user_id}) is None:
                raise NotFound
            if await transaction.execute(store.MARK_ERASED, marked):
                await transaction.execute(store.CLOSE_KEYS, marked)
                await self._audit.record_in(transaction, by, "erase", "user", user_id)

        await self._database.write(work, owner=user_id)

    async def _clear(self, user_id: str) -> Erasure:
        upstream = await self._upstream.erase(user_id)
        for participant in self._participants:
            await participant.erase(user_id)
        await self._blobs.remove(check_user_id(user_id))
        return upstream

    async def _stamp(self, mark: str, user_id: str) -> None:
        """The keys go last: until then the user can ask again with their own."""
        params = {"user_id": user_id, "now": rfc3339(self._clock())}

        async def work(transaction: Transaction) -> None:
            await transaction.execute(mark, params)
            await transaction.execute(store.DELETE_KEYS, {"user_id": user_id})

        await self._database.write(work, owner=user_id)
