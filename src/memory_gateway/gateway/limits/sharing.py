"""Limits of several processes agree through the database, a moment later: no request waits for it.

Each process tells now and then what it has let through, and learns what is left. In between it goes by what it knows,
so within that moment each may let through what the bucket held when it last heard of it.
"""

import asyncio
import contextlib
import logging
from collections.abc import Mapping

from memory_gateway.gateway.limits import store
from memory_gateway.gateway.limits.buckets import TokenBuckets
from memory_gateway.kit.clock import Clock
from memory_gateway.kit.errors import StorageUnavailable
from memory_gateway.storage.port import Database, Transaction

_PAUSE_SECONDS = 0.5

_logger = logging.getLogger(__name__)


class SharedLimits:
    """Keeps the buckets of each kind of limit in step with those of other processes, from entering to leaving."""

    def __init__(self, database: Database, clock: Clock, limits: Mapping[str, TokenBuckets]) -> None:
        self._database = database
        self._clock = clock
        self._limits = limits
        self._told: dict[str, set[str]] = {kind: set() for kind in limits}
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "SharedLimits":
        self._task = asyncio.create_task(self._run(), name="limits")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def exchange(self) -> None:
        """Tell what was taken here and learn what is left. What cannot be told now is forgotten."""
        for kind, buckets in self._limits.items():
            taken = buckets.taken()
            asked = taken.keys() | self._told[kind]  # once more, for others were perhaps about to tell
            self._told[kind] = set(taken)
            if asked:
                for name, tokens in (await self._left(kind, buckets, {name: taken[name] for name in asked})).items():
                    buckets.settle(name, tokens)

    async def _left(self, kind: str, buckets: TokenBuckets, taken: Mapping[str, int]) -> dict[str, float]:
        now_ms = self._clock()
        full_at_ms = now_ms + round(buckets.burst / buckets.rate * 1000)
        common = {"rate": buckets.rate, "burst": buckets.burst, "now_ms": now_ms, "full_at_ms": full_at_ms}

        async def work(transaction: Transaction) -> dict[str, float]:
            left = {}
            for name in sorted(taken):  # in one order, so that processes never wait for each other in a ring
                params = {**common, "name": f"{kind}:{name}", "taken": float(taken[name])}
                ((left[name],),) = await transaction.fetch(store.TAKE, params)
            await transaction.execute(store.DROP_FULL, {"now_ms": now_ms})
            return left

        return await self._database.write(work, owner=None)

    async def _run(self) -> None:
        while True:
            try:
                await self.exchange()
            except StorageUnavailable as error:
                _logger.warning("limits count for each process alone: %s", error.message)
            except Exception:
                _logger.exception("sharing limits failed; it goes on")
            await asyncio.sleep(_PAUSE_SECONDS)
