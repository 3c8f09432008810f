"""Stands before an upstream that cannot tell messages apart by what they say: each of them reaches it once.

EverOS names a message by its session, its millisecond and its place in the request. So a second message of the same
name is lost while the first still waits for extraction, and one that is sent again after extraction is remembered
twice. Here the digests of what was sent in the last seven days are kept, by session:

* A message that arrived already is not sent again.
* A message whose millisecond and place are another's is moved on by whole milliseconds until it is alone; what comes
  after it in the request moves along, so that the order stays.
* After an answer that never came the same request goes out under the same names, and may be answered for by what has
  arrived the first time.

Everything else of the request goes out as it came in.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, ParamSpec, TypeVar

import msgspec
from msgspec import Raw, Struct, structs

from memory_gateway.engine.pieces import digest_of, normal_timestamp
from memory_gateway.engine.schemas import (
    AddReply,
    AddRequest,
    Caller,
    FlushReply,
    FlushRequest,
    Message,
)
from memory_gateway.kit.clock import Clock, rfc3339
from memory_gateway.kit.errors import StorageUnavailable, UpstreamRefused
from memory_gateway.kit.files import off_loop
from memory_gateway.storage.lists import with_list
from memory_gateway.storage.port import Database, Row, Transaction
from memory_gateway.upstream import store
from memory_gateway.upstream.before import Before
from memory_gateway.upstream.fence import FencedDatabase
from memory_gateway.upstream.port import Erasure, Upstream

_logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

REMEMBERED_MS = 7 * 24 * 3_600_000
_MILLISECONDS_FROM = 1_000_000_000_000  # below it a timestamp counts seconds, so nothing lies between two of them
_HASHED_AT_ONCE = 1 << 18
_EXPORTED = ("app_id", "project_id", "session_id", "digest", "timestamp_ms", "state", "sent_at")


class _Session(Struct, frozen=True):
    user_id: str
    app_id: str
    project_id: str
    session_id: str


class _Outgoing(Struct, frozen=True):
    """One message to send: where it stands in the request, and the time it is sent with."""

    index: int
    digest: str
    timestamp_ms: int


class EachOnce(Before):
    """An `Upstream` before another. In one process a repeat waits until the request it repeats is answered."""

    def __init__(self, upstream: Upstream, database: Database, clock: Clock) -> None:
        super().__init__(upstream)
        self._database = database
        self._clock = clock
        self._under_way: dict[tuple[_Session, str], asyncio.Future[None]] = {}

    async def add(self, request: AddRequest, caller: Caller) -> AddReply:
        """The upstream's answer for all messages of the request; its own where nothing is left to send."""
        if caller.user_id is None:
            return await self._upstream.add(request, caller)
        session = _Session(caller.user_id, request.app_id, request.project_id, request.session_id)
        digests = await _worked(request, _digests, request.messages)
        async with self._alone(session, digests):
            outgoing = await self._reserved(session, request.messages, digests)
            count = len(request.messages)
            if not outgoing:
                return AddReply(count, "accumulated")
            reply = await self._upstream.add(await _worked(request, _changed, request, outgoing), caller)
            if reply.status != "queued":  # which may still fail
                await self._note(store.ARRIVED, [_params(session, digest=one.digest) for one in outgoing])
        return structs.replace(reply, message_count=count)

    async def flush(self, request: FlushRequest, caller: Caller) -> FlushReply:
        """Where it fails with 500 EverOS may have thrown away what waited: then a repeat is to reach it."""
        if caller.user_id is None:
            return await self._upstream.flush(request, caller)
        of = _params(_Session(caller.user_id, request.app_id, request.project_id, request.session_id))
        try:
            reply = await self._upstream.flush(request, caller)
        except UpstreamRefused as error:
            if error.status >= 500:
                await self._note(store.DOUBT, [of])
            raise
        if reply.status != "queued":
            await self._note(store.SETTLE, [of])
        return reply

    async def erase(self, user_id: str) -> Erasure:
        erasure = await self._upstream.erase(user_id)
        params = {"user_id": user_id}
        await self._database.write(lambda transaction: transaction.execute(store.ERASE_SENT, params), owner=user_id)
        return erasure

    async def export(self, user_id: str, places: Sequence[tuple[str, str]]) -> AsyncIterator[dict[str, Any]]:
        async for item in self._upstream.export(user_id, places):
            yield item
        for row in await self._database.read(lambda transaction: _exported(transaction, user_id)):
            yield {"kind": "sent_message", **dict(zip(_EXPORTED, row, strict=True))}

    @asynccontextmanager
    async def _alone(self, session: _Session, digests: Sequence[str]) -> AsyncIterator[None]:
        """While no other request with one of these messages is under way."""
        names = [(session, digest) for digest in digests]
        while others := {self._under_way[name] for name in names if name in self._under_way}:
            await asyncio.wait(others)
        done = asyncio.get_running_loop().create_future()
        self._under_way.update(dict.fromkeys(names, done))
        try:
            yield
        finally:
            for name in names:
                del self._under_way[name]
            done.set_result(None)

    async def _reserved(
        self, session: _Session, messages: Sequence[Message], digests: Sequence[str]
    ) -> list[_Outgoing]:
        """What is to be sent, in the request's order, each under a name of its own from now on."""

        async def work(transaction: Transaction) -> list[_Outgoing]:
            before = rfc3339(self._clock() - REMEMBERED_MS)
            await transaction.execute(store.DROP_OLD_SENT, {"user_id": session.user_id, "before": before})
            sent = await _sent(transaction, session, digests)
            left = [index for index, digest in enumerate(digests) if digest not in sent]
            return await self._placed(transaction, session, messages, digests, left)

        return await FencedDatabase(self._database, session.user_id).write(work, owner=session.user_id)

    async def _placed(
        self,
        transaction: Transaction,
        session: _Session,
        messages: Sequence[Message],
        digests: Sequence[str],
        left: Sequence[int],
    ) -> list[_Outgoing]:
        """Gone through in the order in which EverOS will read them: by time, then by place."""
        now = rfc3339(self._clock())
        times = {index: normal_timestamp(messages[index].timestamp) for index in left}
        outgoing = []
        latest = (0, -1)
        for place, index in sorted(enumerate(left), key=lambda one: (times[one[1]], one[0])):
            time = max(times[index], latest[0])
            if (time, place) <= latest:
                time = _next(time)
            params = _params(session, digest=digests[index], place=place)
            while await transaction.fetch_one(store.SLOT_OF_ANOTHER, {**params, "timestamp_ms": time}):
                time = _next(time)
            await transaction.execute(store.RESERVE, {**params, "timestamp_ms": time, "now": now})
            outgoing.append(_Outgoing(index, digests[index], time))
            latest = (time, place)
        return sorted(outgoing, key=lambda one: one.index)

    async def _note(self, statement: str, params: list[dict[str, Any]]) -> None:
        """What the upstream has answered counts, and not its note: without it a repeat is sent under the same name."""
        try:
            await self._database.write(lambda transaction: transaction.execute_many(statement, params), owner=None)
        except StorageUnavailable:
            _logger.warning("what became of the messages of a session could not be noted", exc_info=True)


def _params(session: _Session, **more: Any) -> dict[str, Any]:
    return {**structs.asdict(session), **more}


async def _sent(transaction: Transaction, session: _Session, digests: Sequence[str]) -> set[str]:
    sql, params = with_list(store.SENT, "digests", digests)
    return {digest for (digest,) in await transaction.fetch(sql, {**_params(session), **params})}


async def _exported(transaction: Transaction, user_id: str) -> list[Row]:
    return await transaction.fetch(store.EXPORT_SENT, {"user_id": user_id})


def _next(timestamp_ms: int) -> int:
    return timestamp_ms + (1 if timestamp_ms >= _MILLISECONDS_FROM else 1000)


def _digests(messages: Sequence[Message]) -> list[str]:
    """A message that stands in a request several times is as many messages."""
    seen: Counter[str] = Counter()
    digests = []
    for message in messages:
        digest = digest_of(message)
        digests.append(f"{digest}.{seen[digest]}")
        seen[digest] += 1
    return digests


def _changed(request: AddRequest, outgoing: Sequence[_Outgoing]) -> AddRequest:
    """The request with these messages alone, at these times."""
    kept = [(one.index, _written(request.messages[one.index].timestamp, one.timestamp_ms)) for one in outgoing]
    if kept == [(index, message.timestamp) for index, message in enumerate(request.messages)]:
        return request
    messages = tuple(structs.replace(request.messages[index], timestamp=time) for index, time in kept)
    wire = None if request.wire_messages is None else _changed_wire(request, kept)
    return structs.replace(request, messages=messages, wire_messages=wire)


def _changed_wire(request: AddRequest, kept: Sequence[tuple[int, int]]) -> Raw:
    """A message that keeps its time keeps every byte."""
    written = msgspec.json.decode(request.wire_messages or b"[]", type=list[Raw])
    messages = [
        written[index] if time == request.messages[index].timestamp else _at(written[index], time)
        for index, time in kept
    ]
    return Raw(msgspec.json.encode(messages))


def _at(message: Raw, timestamp: int) -> Raw:
    fields = msgspec.json.decode(message, type=dict[str, Raw])
    fields["timestamp"] = Raw(msgspec.json.encode(timestamp))
    return Raw(msgspec.json.encode(fields))


def _written(own: int, timestamp_ms: int) -> int:
    """As the client wrote it, unless the message was moved; times that EverOS would read as seconds are seconds."""
    if normal_timestamp(own) == timestamp_ms:
        return own
    return timestamp_ms if timestamp_ms >= _MILLISECONDS_FROM else timestamp_ms // 1000


async def _worked(request: AddRequest, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Off the loop where the request may be long."""
    wire = request.wire_messages
    if wire is None or len(bytes(wire)) > _HASHED_AT_ONCE:
        return await off_loop(work, *args, **kwargs)
    return work(*args, **kwargs)
