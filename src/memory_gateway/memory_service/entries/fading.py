"""Decay carried out: one user, one transaction, one moment; and once a day for everybody where that is wished."""

import asyncio
import contextlib
import logging

from memory_gateway.kit.clock import Clock
from memory_gateway.kit.errors import StorageUnavailable
from memory_gateway.kit.ids import IdMaker
from memory_gateway.memory_service.entries import store
from memory_gateway.memory_service.entries.decay import Idle, Moment, Verdict, judge, moment
from memory_gateway.memory_service.entries.matching import load_entry
from memory_gateway.memory_service.entries.nearest import Nearest
from memory_gateway.memory_service.entries.owners import Owner, entry_no_of, find_owner
from memory_gateway.memory_service.entries.writing import Writing
from memory_gateway.storage.leases import Leases
from memory_gateway.storage.port import Database, Transaction

_LEASE = "memory-service:decay"
_DAY_SECONDS = 24 * 3600.0
_FAULT_SECONDS = 60.0
_USERS_AT_ONCE = 100

_logger = logging.getLogger(__name__)

Verdicts = dict[int, Verdict]


async def preview(transaction: Transaction, user_id: str, now_ms: int) -> tuple[int, int]:
    """How many entries a decay at this moment would demote and delete."""
    owner = await find_owner(transaction, user_id)
    return (0, 0) if owner is None else _counts(await _verdicts(transaction, owner, moment(now_ms)))


async def fade(transaction: Transaction, nearest: Nearest, user_id: str, now_ms: int) -> tuple[int, int]:
    """Demote and delete; how many of each."""
    owner = await find_owner(transaction, user_id)
    if owner is None:
        return 0, 0
    at = moment(now_ms)
    verdicts = await _verdicts(transaction, owner, at)
    writing = Writing(transaction, owner, nearest)
    for key, verdict in verdicts.items():
        if verdict.deleted:
            await writing.remove(await load_entry(transaction, owner, entry_no_of(key)))
        elif verdict.demoted:
            await writing.demote(key, at.now)
    await writing.finish()
    return _counts(verdicts)


async def _verdicts(transaction: Transaction, owner: Owner, at: Moment) -> Verdicts:
    params = {**owner.keys, "idle_before": at.deleted_before, "now": at.now}
    idle = (Idle(*row) for row in await transaction.fetch(store.DECAY_CANDIDATES, params))
    return {entry.entry_key: judge(entry, at) for entry in idle}


def _counts(verdicts: Verdicts) -> tuple[int, int]:
    return sum(one.demoted for one in verdicts.values()), sum(one.deleted for one in verdicts.values())


class DailyDecay:
    """One task a process; whoever gets the day's lease does it for all, also across restarts."""

    def __init__(self, database: Database, clock: Clock, new_id: IdMaker, nearest: Nearest) -> None:
        self._database = database
        self._clock = clock
        self._new_id = new_id
        self._nearest = nearest
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="daily decay")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def run_if_due(self) -> bool:
        """Visit every user, unless somebody did within a day."""
        # a holder of its own each time: a lease would otherwise be renewed by its holder before it has run out
        leases = Leases(self._database, self._clock, self._new_id())
        if not await leases.acquire(_LEASE, seconds=_DAY_SECONDS):
            return False
        after = ""
        while users := await self._database.fetch(store.USER_IDS, {"after": after, "limit": _USERS_AT_ONCE}):
            for (user_id,) in users:
                await self._fade(user_id)
            after = users[-1][0]
        return True

    async def _fade(self, user_id: str) -> None:
        now_ms = self._clock()
        await self._database.write(lambda transaction: fade(transaction, self._nearest, user_id, now_ms), owner=user_id)

    async def _run(self) -> None:
        while True:
            try:
                await self.run_if_due()
            except StorageUnavailable as error:
                _logger.warning("the daily decay waits: %s", error.message)
            await asyncio.sleep(_FAULT_SECONDS)
