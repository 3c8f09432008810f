"""Sending resources to the upstream: small ones while the client waits, others in the background.

A resource that is being worked on is under a lease, so several processes never do it twice; one whose process died is
taken up again once the lease has run out, because its row still says ``stored``. So is one that a passing fault
stopped, after a pause. Users are served in turn, one resource of a user at a time: nobody's many hold up the others.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import count

from msgspec import Struct

from memory_gateway.blobs.port import BlobStore
from memory_gateway.engine.schemas import AddReply
from memory_gateway.gateway.resources import store
from memory_gateway.gateway.resources.schemas import Resource, Status, StoredResource
from memory_gateway.gateway.resources.sending import Sender
from memory_gateway.gateway.resources.tries import Tries, passes
from memory_gateway.kit.errors import InvalidInput, MemoryGatewayError, StorageUnavailable, UpstreamRefused
from memory_gateway.storage.leases import Leases
from memory_gateway.storage.port import Database, Row, Transaction
from memory_gateway.upstream.port import Upstream

LEASE_SECONDS = 60.0
_RENEW_SECONDS = 20.0
_LOOK_AGAIN_SECONDS = 30.0
_WORKERS = 2
_LOOKED_AT = 32
_logger = logging.getLogger(__name__)


class Outcome(Struct, frozen=True):
    """How a resource ends: ``failed`` is a file that is kept, and found by its name alone."""

    status: Status
    error: str | None = None


def outcome_of(reply: AddReply) -> Outcome:
    """What the upstream said of the file: read, read in part, or not at all."""
    for note in reply.notes:
        return Outcome("indexed" if note.readable else "failed", note.message)
    return Outcome("indexed")


class Indexer:
    """Tells the upstream of resources and keeps their status."""

    def __init__(
        self, database: Database, upstream: Upstream, leases: Leases, blobs: BlobStore, extraction_timeout: float
    ) -> None:
        self._database = database
        self._sender = Sender(upstream, extraction_timeout)
        self._blobs = blobs
        self._leases = leases
        self._held: set[str] = set()
        self._served: set[str] = set()
        self._turns = count(1)
        self._last_turn: dict[str, int] = {}
        self._tries = Tries()
        self._workers: list[asyncio.Task[None]] = []
        self._work_came = asyncio.Event()

    def wake(self) -> None:
        """There are, or may be, unfinished resources: have the workers look."""
        if not self._workers:
            self._workers = [asyncio.create_task(self._work_off()) for _ in range(_WORKERS)]
        self._work_came.set()

    def ask_for(self, resource_id: str) -> None:
        """Somebody waits for this one: have it tried without a pause."""
        self._tries.forget(resource_id)
        self.wake()

    async def close(self) -> None:
        """Stop the workers. What they leave is still ``stored`` and free to be taken up."""
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        self._workers = []
        await self._sender.close()

    @asynccontextmanager
    async def claimed(self, resource_id: str) -> AsyncIterator[bool]:
        """Hold the resource's lease in this block; False where another process, or another task here, has it."""
        if resource_id in self._held:
            yield False
            return
        self._held.add(resource_id)
        try:
            async with self._leased(f"resource:{resource_id}") as ours:
                yield ours
        finally:
            self._held.discard(resource_id)

    async def index_now(self, stored: StoredResource) -> Outcome | None:
        """Index it while its lease is held. Raises what the upstream refused, which then holds nothing of it.

        None where it may hold the file, or part of it, and where all of it takes more requests than a client waits
        for: the row stays ``stored``, for the workers to finish.
        """
        added = False
        try:
            async with self._blobs.local_path(stored.key) as path:
                reply = await self._sender.add_at_once(stored, path)
                if reply is None:
                    return None
                added = True
                await self._sender.flush(stored, path)
            outcome = outcome_of(reply)
            await self.settle(stored, outcome)
        except Exception as error:
            if not added and isinstance(error, UpstreamRefused | InvalidInput):
                raise
            _logger.warning("resource %s is left to the background", stored.resource.id, exc_info=True)
            self._tries.again(stored.resource.id)
            return None
        return outcome

    async def settle(self, stored: StoredResource, outcome: Outcome) -> None:
        """Write down how it went."""
        params = {
            "user_id": stored.user_id,
            "id": stored.resource.id,
            "status": outcome.status,
            "error": outcome.error,
        }

        async def work(transaction: Transaction) -> None:
            await transaction.execute(store.SET_STATUS, params)

        await self._database.write(work, owner=stored.user_id)

    async def index_next(self) -> bool:
        """Try the oldest unfinished resource that is due and that nobody works on; False where there is none.

        Of the users that are not being served, the one whose last turn is longest ago comes first.
        """
        for user_id, resource_id in await self._unfinished():
            if user_id in self._served or self._tries.waits(resource_id):
                continue
            with self._serving(user_id):
                async with self.claimed(resource_id) as ours:
                    if ours and await self._index(user_id, resource_id):
                        self._last_turn[user_id] = next(self._turns)
                        self._work_came.set()  # another worker may have passed over this user
                        return True
        return False

    async def _unfinished(self) -> list[Row]:
        limit = _LOOKED_AT + len(self._tries)

        async def work(transaction: Transaction) -> list[Row]:
            return await transaction.fetch(store.UNFINISHED, {"limit": limit})

        rows = await self._database.read(work)
        if len(rows) < limit:  # these are all
            self._tries.keep(resource_id for _, resource_id in rows)
            waiting = {user_id for user_id, _ in rows}
            self._last_turn = {one: turn for one, turn in self._last_turn.items() if one in waiting}
        return sorted(rows, key=lambda row: self._last_turn.get(row[0], 0))

    @contextmanager
    def _serving(self, user_id: str) -> Iterator[None]:
        self._served.add(user_id)
        try:
            yield
        finally:
            self._served.remove(user_id)

    async def _index(self, user_id: str, resource_id: str) -> bool:
        row = await self._database.fetch_one(store.ONE, {"user_id": user_id, "id": resource_id})
        stored = stored_resource(row) if row else None
        if stored is None or stored.resource.status != "stored":
            return False  # finished by another process between the look and the lease
        try:
            async with self._blobs.local_path(stored.key) as path:
                reply = await self._sender.add(stored, path)
                await self._sender.flush(stored, path)
            outcome = outcome_of(reply)
        except MemoryGatewayError as error:
            if passes(error) and self._tries.again(resource_id):
                _logger.warning("resource %s could not be indexed now: %s", resource_id, error.message)
                return True
            outcome = Outcome("failed", error.message)
        except Exception:
            _logger.exception("resource %s could not be indexed", resource_id)
            outcome = Outcome("failed", MemoryGatewayError().message)
        await self.settle(stored, outcome)
        self._tries.forget(resource_id)
        return True

    async def _work_off(self) -> None:
        while True:
            self._work_came.clear()
            try:
                while await self.index_next():
                    pass
            except StorageUnavailable:
                _logger.warning("background indexing waits for the database", exc_info=True)
            except Exception:
                _logger.exception("background indexing failed; it goes on")
            await self._pause()

    async def _pause(self) -> None:
        # not wait_for: on Python 3.11 it can swallow a cancellation
        with suppress(TimeoutError):  # then it is time to see whether another process left something
            async with asyncio.timeout(_LOOK_AGAIN_SECONDS):
                await self._work_came.wait()

    @asynccontextmanager
    async def _leased(self, name: str) -> AsyncIterator[bool]:
        if not await self._leases.acquire(name, seconds=LEASE_SECONDS):
            yield False
            return
        renewal = asyncio.create_task(self._renew(name))
        try:
            yield True
        finally:
            renewal.cancel()
            await self._release(name)

    async def _renew(self, name: str) -> None:
        while True:
            await asyncio.sleep(_RENEW_SECONDS)
            try:
                if not await self._leases.acquire(name, seconds=LEASE_SECONDS):
                    _logger.warning("lease %s ran out and was taken over; the upstream may see its message twice", name)
            except StorageUnavailable:
                _logger.warning("lease %s could not be renewed now", name, exc_info=True)

    async def _release(self, name: str) -> None:
        try:
            await self._leases.release(name)
        except StorageUnavailable:
            _logger.warning("lease %s could not be released; it will run out", name, exc_info=True)


def stored_resource(row: Row) -> StoredResource:
    """A row of the statements that select all of it."""
    return StoredResource(Resource(*row[:15]), *row[15:])
