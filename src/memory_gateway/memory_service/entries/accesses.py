"""Counting accesses: gathered in memory, written a moment later, many at a time."""

import asyncio
import contextlib
import logging

from memory_gateway.kit.clock import Clock, rfc3339
from memory_gateway.kit.errors import StorageUnavailable
from memory_gateway.memory_service.entries import store
from memory_gateway.memory_service.entries.owners import user_no_of
from memory_gateway.storage.port import Database, Transaction

_PAUSE_SECONDS = 0.2
_FAULT_PAUSE_SECONDS = 5.0

_CountsOfUser = dict[int, tuple[int, int]]  # accesses of each entry, and the time of the last
_Counts = dict[str, _CountsOfUser]

_logger = logging.getLogger(__name__)


class Accesses:
    """`close` writes what is left."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._counts: _Counts = {}
        self._writing = asyncio.Lock()
        self._closing = asyncio.Event()
        self._later: asyncio.Task[None] | None = None

    def count(self, user_id: str, entry_key: int) -> None:
        """One more access of this user's entry, now."""
        self._add(user_id, entry_key, 1, self._clock())
        if self._later is None or self._later.done():
            self._later = asyncio.create_task(self._write_later(), name="accesses")

    async def flush(self) -> None:
        """All that was counted before this call is in the database when it returns."""
        # to its end even when the caller is cancelled: half-known counts would be lost, or written twice
        await asyncio.shield(asyncio.ensure_future(self._write()))

    async def close(self) -> None:
        self._closing.set()
        if self._later is not None:
            await self._later
        await self.flush()

    def _add(self, user_id: str, entry_key: int, accesses: int, last_ms: int) -> None:
        counts = self._counts.setdefault(user_id, {})
        before, before_ms = counts.get(entry_key, (0, last_ms))
        counts[entry_key] = (before + accesses, max(before_ms, last_ms))

    async def _write(self) -> None:
        async with self._writing:
            counted, self._counts = self._counts, {}
            written = await asyncio.gather(*(self._write_of(*one) for one in counted.items()), return_exceptions=True)
            for fault in written:
                if fault is not None:
                    raise fault

    async def _write_of(self, user_id: str, counts: _CountsOfUser) -> None:
        try:
            await self._database.write(lambda transaction: _save(transaction, counts), owner=user_id)
        except Exception:
            for entry_key, (accesses, last_ms) in counts.items():
                self._add(user_id, entry_key, accesses, last_ms)
            raise

    async def _write_later(self) -> None:
        pause = _PAUSE_SECONDS
        while self._counts and not self._closing.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), pause)
            try:
                await self.flush()
            except StorageUnavailable as error:
                pause = _FAULT_PAUSE_SECONDS
                _logger.warning("accesses are counted later: %s", error.message)


async def _save(transaction: Transaction, counts: _CountsOfUser) -> None:
    await transaction.execute_many(
        store.COUNT_ACCESSES,
        (
            {"user_no": user_no_of(key), "entry_key": key, "accesses": accesses, "last_access": rfc3339(last_ms)}
            for key, (accesses, last_ms) in counts.items()
        ),
    )
