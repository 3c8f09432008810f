"""Keeps what an upstream cannot take now, and sends it in order when it can.

An add is kept where the upstream is away, too slow or fails, and is then answered as queued; so is every later add or
flush of that session until nothing of it waits. One process at a time sends, the oldest of each session first. What is
sent twice, because a process died before it could note the first time, is `EachOnce`'s to tell.

The gateway's own files are not kept here: they are on the disk, and their indexing is tried again.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import msgspec
from msgspec import Raw, Struct, structs

from memory_gateway.engine.schemas import (
    AddReply,
    AddRequest,
    Caller,
    FlushReply,
    FlushRequest,
    Message,
)
from memory_gateway.kit.clock import Clock, rfc3339
from memory_gateway.kit.errors import (
    MemoryGatewayError,
    PayloadTooLarge,
    StorageUnavailable,
    TooManyRequests,
    UpstreamRefused,
)
from memory_gateway.kit.ids import IdMaker
from memory_gateway.storage.leases import Leases
from memory_gateway.storage.port import Database, Row, Transaction
from memory_gateway.upstream import store
from memory_gateway.upstream.before import Before
from memory_gateway.upstream.fence import FencedDatabase
from memory_gateway.upstream.port import Erasure, Upstream, UpstreamHealth

_logger = logging.getLogger(__name__)

MOST_OF_A_USER = 1_000
LONGEST = 4 << 20
FIRST_PAUSE_MS = 5_000
LONGEST_PAUSE_MS = 30 * 60_000
MOST_TRIES = 300  # about six days, within which `EachOnce` knows what it has sent
MOST_REFUSALS = 20  # about six hours: a 500 may be the request's own fault, and holds up what comes after it
_LOOK_AGAIN_SECONDS = 5.0
_LEASE_SECONDS = 300.0
_LEASE = "outbox"
_MISSING_PARSER = "CAPABILITY_UNAVAILABLE"  # does not pass by waiting
_EXPORTED = ("app_id", "project_id", "session_id", "messages", "tries", "error")


class _Kept(Struct, frozen=True):
    """One request that waits."""

    user_id: str
    id: str
    app_id: str
    project_id: str
    session_id: str
    tries: int

    @property
    def key(self) -> dict[str, str]:
        return {"user_id": self.user_id, "id": self.id}


class Outbox(Before):
    """An `Upstream` before another. In its context it sends what waits; what is left is sent after the next start."""

    def __init__(self, upstream: Upstream, database: Database, clock: Clock, new_id: IdMaker, leases: Leases) -> None:
        super().__init__(upstream)
        self._database = database
        self._clock = clock
        self._new_id = new_id
        self._leases = leases
        self._worker: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._worker = asyncio.create_task(self._work_off(), name="outbox")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._worker is not None:
            self._worker.cancel()
            with suppress(asyncio.CancelledError):
                await self._worker

    async def add(self, request: AddRequest, caller: Caller) -> AddReply:
        """The upstream's answer, or ``queued``. What cannot be kept gets the upstream's error."""
        if caller.user_id is None or caller.own_files:
            return await self._upstream.add(request, caller)
        if await self._waits(caller.user_id, request):
            await self._keep(caller.user_id, request, _written(request))
            return AddReply(len(request.messages), "queued")
        try:
            return await self._upstream.add(request, caller)
        except MemoryGatewayError as error:
            if not _passes(error) or not await self._kept_instead(caller.user_id, request):
                raise
            _logger.warning("an add is kept for later: %s", error.message)
            return AddReply(len(request.messages), "queued")

    async def flush(self, request: FlushRequest, caller: Caller) -> FlushReply:
        """Behind adds that wait it waits as well; one that fails by itself may be asked for again."""
        if caller.user_id is None or caller.own_files or not await self._waits(caller.user_id, request):
            return await self._upstream.flush(request, caller)
        await self._keep(caller.user_id, request, None)
        return FlushReply("queued")

    async def erase(self, user_id: str) -> Erasure:
        params = {"user_id": user_id}
        await self._database.write(lambda transaction: transaction.execute(store.ERASE_OUTBOX, params), owner=user_id)
        return await self._upstream.erase(user_id)

    async def export(self, user_id: str, places: Sequence[tuple[str, str]]) -> AsyncIterator[dict[str, Any]]:
        async for item in self._upstream.export(user_id, places):
            yield item
        for row in await self._read(store.EXPORT_OUTBOX, {"user_id": user_id}):
            item = dict(zip(_EXPORTED, row, strict=True))
            messages = None if item["messages"] is None else msgspec.json.decode(item["messages"])
            yield {"kind": "outbox", **item, "messages": messages}

    async def health(self) -> UpstreamHealth:
        health = await self._upstream.health()
        try:
            ((waiting,),) = await self._read(store.COUNT_WAITING, {})
        except StorageUnavailable:  # which the database's own health tells
            return health
        return structs.replace(health, details={**health.details, "outbox": waiting})

    async def send_due(self) -> int:
        """Send what is due, one request of a session after the other; how many arrived."""
        sent = 0
        for row in await self._read(store.DUE, {"now": self._in(0)}):
            if not await self._leases.acquire(_LEASE, seconds=_LEASE_SECONDS):
                return sent
            try:
                sent += await self._sent(_Kept(*row))
            finally:
                await self._leases.release(_LEASE)
        return sent

    async def _sent(self, kept: _Kept) -> bool:
        try:
            await self._send(kept)
        except StorageUnavailable:
            raise
        except MemoryGatewayError as error:
            await self._put_off(kept, error)
            return False
        await self._write(store.DELIVERED, kept.key)
        return True

    async def _put_off(self, kept: _Kept, error: MemoryGatewayError) -> None:
        """Until later, or for ever: then the row stays, for the operator and the user's export."""
        most = MOST_REFUSALS if error.status == 500 else MOST_TRIES
        if _passes(error) and kept.tries + 1 < most:
            pause = min(FIRST_PAUSE_MS * 2 ** min(kept.tries, 20), LONGEST_PAUSE_MS)
            await self._write(store.TRY_LATER, {**kept.key, "next_at": self._in(pause)})
            return
        _logger.warning("a request that was kept for later is given up: %s", error.message)
        await self._write(store.GIVE_UP, {**kept.key, "error": error.message})

    async def _send(self, kept: _Kept) -> None:
        row = await self._database.fetch_one(store.MESSAGES, kept.key)
        if row is None:  # erased, or sent by another process, since it was looked up
            return
        caller, place = Caller(user_id=kept.user_id), (kept.app_id, kept.project_id)
        if row[0] is None:
            await self._upstream.flush(FlushRequest(kept.session_id, *place), caller)
            return
        wire = row[0].encode()
        messages = msgspec.json.decode(wire, type=tuple[Message, ...])
        await self._upstream.add(AddRequest(kept.session_id, messages, *place, Raw(wire)), caller)

    async def _waits(self, user_id: str, request: AddRequest | FlushRequest) -> bool:
        return await self._database.fetch_one(store.WAITS, _session(user_id, request)) is not None

    async def _kept_instead(self, user_id: str, request: AddRequest) -> bool:
        """Whether it could be kept: the request's own error counts, and not that of keeping it."""
        try:
            await self._keep(user_id, request, _written(request))
        except MemoryGatewayError as error:
            _logger.warning("an add that failed could not be kept: %s", error.message)
            return False
        return True

    async def _keep(self, user_id: str, request: AddRequest | FlushRequest, messages: bytes | None) -> None:
        if messages is not None and len(messages) > LONGEST:
            raise PayloadTooLarge("the request is too large to be kept until the memory system takes it")
        params = {
            **_session(user_id, request),
            "id": self._new_id(),
            "messages": None if messages is None else messages.decode(),
            "next_at": self._in(FIRST_PAUSE_MS),
        }

        async def work(transaction: Transaction) -> None:
            row = await transaction.fetch_one(store.COUNT_OF_USER, {"user_id": user_id})
            if row is not None and row[0] >= MOST_OF_A_USER:
                raise TooManyRequests("too many requests wait for the memory system", retry_after=FIRST_PAUSE_MS / 1000)
            await transaction.execute(store.KEEP, params)

        await FencedDatabase(self._database, user_id).write(work, owner=user_id)

    async def _work_off(self) -> None:
        while True:
            try:
                while await self.send_due():
                    pass
            except StorageUnavailable:
                _logger.warning("what waits to be sent waits for the database", exc_info=True)
            except Exception:
                _logger.exception("sending what waits failed; it goes on")
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)

    async def _read(self, sql: str, params: dict[str, Any]) -> list[Row]:
        return await self._database.read(lambda transaction: transaction.fetch(sql, params))

    async def _write(self, sql: str, params: dict[str, Any]) -> None:
        await self._database.write(lambda transaction: transaction.execute(sql, params), owner=None)

    def _in(self, milliseconds: int) -> str:
        return rfc3339(self._clock() + milliseconds)


def _session(user_id: str, request: AddRequest | FlushRequest) -> dict[str, str]:
    return {
        "user_id": user_id,
        "app_id": request.app_id,
        "project_id": request.project_id,
        "session_id": request.session_id,
    }


def _written(request: AddRequest) -> bytes:
    return msgspec.json.encode(request.messages if request.wire_messages is None else request.wire_messages)


def _passes(error: MemoryGatewayError) -> bool:
    """Whether it lies with the upstream of this moment: its 500 may, as that is what it says without its model."""
    if isinstance(error, UpstreamRefused) and error.upstream_code == _MISSING_PARSER:
        return False
    return error.status >= 500 and not isinstance(error, StorageUnavailable)
