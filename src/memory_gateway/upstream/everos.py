"""EverOS over HTTP: the only file that knows its routes, its envelope and its error codes.

EverOS has no users, no delete and no authentication: who may see what is the gateway's affair, and what stays
behind after an erasure is said, not hidden.
"""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field
from msgspec.json import Decoder

from memory_gateway.engine.schemas import (
    AddReply,
    AddRequest,
    Caller,
    FlushReply,
    FlushRequest,
    GetReply,
    GetRequest,
    ListedMemoryType,
    MemoryKey,
    Message,
    RawItem,
    SearchReply,
    SearchRequest,
)
from memory_gateway.kit.errors import MemoryGatewayError, UpstreamRefused, UpstreamTimeout, UpstreamUnreachable
from memory_gateway.upstream.port import Erasure, UpstreamHealth, UpstreamTraits
from memory_gateway.upstream.wire import Answer, HttpWire, Wire

_logger = logging.getLogger(__name__)

_CONNECT_TIMEOUT: Final = 5.0
_HEALTH_TIMEOUT: Final = 5.0
_READ_ATTEMPTS: Final = 2
_RETRY_PAUSE: Final = 0.1
_MAX_TOP_K: Final = 100
# EverOS takes 1.2 s for a keyword search of 500 words, 52 s for one of 5,000. It cuts Han into words of about two
# characters; each character counts as a word here, and so does each of the scripts that are written like it.
_MOST_WORDS: Final = 500
_UNSPACED: Final = "\u0e00-\u0e7f\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_WORD: Final = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_EXPORT_PAGE: Final = 100

# EverOS closes a connection after a 500 without saying so, up to seconds later, and an idle one after five. A read
# that meets this is sent again. A write must not be, so each travels on a connection of its own.
_READ_IDLE: Final = 2.0
_WRITE_IDLE: Final = 0.0

# 422 is also how EverOS reports a provider that refused its text, so a message is forwarded only where its wording
# is known to be about the request.
_REQUEST_FAULT: Final = re.compile(
    r"unsupported (filter field|operator)|operator '|filter field '|empty operator map|(AND|OR) (expects|children)"
    r"|value for '|timestamp (value|string) for '"
    r"|(Input|String|List|Dictionary|Object) should |Field required|Extra inputs |Value error, "
    r"|Search query cannot be empty|JSON decode error|payload contains a lone surrogate|boundary detection failed on "
)
_SAID_INSTEAD: Final = {
    413: "the memory system takes no request of this size",
    415: "the memory system cannot read one of the items",
    429: "the memory system has too much to do, try again later",
    503: "the memory system lacks something it needs for this",
}
_UNREADABLE: Final = (msgspec.MsgspecError, RecursionError)

Reply = TypeVar("Reply")


class _AddBody(Struct, frozen=True):
    session_id: str
    app_id: str
    project_id: str
    messages: Raw | tuple[Message, ...]


class _Success(Struct, Generic[Reply], frozen=True):
    data: Reply


class _Found(Struct, frozen=True):
    """A `SearchReply` with every array: EverOS always sends all five."""

    episodes: list[RawItem]
    profiles: list[RawItem]
    agent_cases: list[RawItem]
    agent_skills: list[RawItem]
    unprocessed_messages: list[RawItem]


class _Listed(Struct, frozen=True):
    """A `GetReply` with every field."""

    episodes: list[RawItem]
    profiles: list[RawItem]
    agent_cases: list[RawItem]
    agent_skills: list[RawItem]
    total_count: int
    count: int


_ADDED: Final = Decoder(_Success[AddReply])
_FLUSHED: Final = Decoder(_Success[FlushReply])
_FOUND: Final = Decoder(_Success[_Found])
_LISTED: Final = Decoder(_Success[_Listed])


class _Fault(Struct, frozen=True):
    code: str
    message: str


class _Failure(Struct, frozen=True):
    error: _Fault


class _Part(Struct, frozen=True):
    healthy: bool
    pending: int | None = None


class _Health(Struct, frozen=True):
    status: str
    cascade: _Part
    memorize_queue: _Part
    version: str = ""
    capabilities: dict[str, bool] = field(default_factory=dict)


class EverosUpstream:
    """A running EverOS server. ``timeout`` in seconds bounds a whole call. ``wire``: in place of the network."""

    name = "everos"

    def __init__(
        self,
        base_url: str,
        prefix: Literal["v1", "v2"] = "v1",
        timeout: float = 60.0,
        shares_files: bool = False,
        wire: Wire | None = None,
    ) -> None:
        self.traits = UpstreamTraits(
            shares_files=shares_files,
            opens_client_uris=True,
            leaves_out_hidden=False,
            stable_ids=False,
            separates_agents=False,
            splits_messages=False,
            can_erase=False,
        )
        self._calls = f"/api/{prefix}/memory"
        self._timeout = timeout
        connect = min(_CONNECT_TIMEOUT, timeout)
        self._reads = wire or HttpWire(base_url, connect_seconds=connect, idle_seconds=_READ_IDLE)
        self._writes = wire or HttpWire(base_url, connect_seconds=connect, idle_seconds=_WRITE_IDLE)

    async def add(self, request: AddRequest, caller: Caller) -> AddReply:  # noqa: ARG002  # EverOS knows no callers
        messages = request.messages if request.wire_messages is None else request.wire_messages
        body = _AddBody(request.session_id, request.app_id, request.project_id, messages)
        return await self._write("add", body, _ADDED)

    async def flush(self, request: FlushRequest, caller: Caller) -> FlushReply:  # noqa: ARG002  # knows no callers
        return await self._write("flush", request, _FLUSHED)

    async def search(self, request: SearchRequest, caller: Caller) -> SearchReply:  # noqa: ARG002  # knows no callers
        """Of a query that it would take too long for, EverOS gets the first 500 words; but by meaning the whole.

        An agent's search by session alone is asked without the condition, which EverOS answers with 500.

        The condition is applied here: to cases. Skills carry no session, and unprocessed messages come only with
        the condition, so both stay out. At most 100 cases are looked at.
        """
        if request.method != "vector":
            request = msgspec.structs.replace(request, query=_first_words(request.query))
        sessions = _sessions_alone(request.filters) if isinstance(request.agent_id, str) else None
        if sessions is None:
            found = await self._read("search", request, _FOUND)
            return SearchReply(*msgspec.structs.astuple(found))
        wider = msgspec.structs.replace(request, filters=UNSET, top_k=_MAX_TOP_K)
        found = await self._read("search", wider, _FOUND)
        cases = [case for case in found.agent_cases if case.get("session_id") in sessions]
        return SearchReply(agent_cases=cases if request.top_k == -1 else cases[: request.top_k])

    async def get(self, request: GetRequest, caller: Caller) -> GetReply:  # noqa: ARG002  # EverOS knows no callers
        listed = await self._read("get", request, _LISTED)
        return GetReply(*msgspec.structs.astuple(listed))

    async def seal(self, app_id: str, project_id: str, memory: MemoryKey, caller: Caller) -> None:
        """Nothing to close: an EverOS episode does not grow."""

    async def within(
        self,
        request: SearchRequest,  # noqa: ARG002  # EverOS finds by query only, so it cannot tell
        episode_ids: list[str],  # noqa: ARG002
        caller: Caller,  # noqa: ARG002
    ) -> frozenset[str] | None:
        return None

    async def erase(self, user_id: str) -> Erasure:
        return Erasure(
            erased=False,
            remaining=f"EverOS has no delete. It still holds the memories of {user_id!r} and of the sessions written"
            " by this user: remove them on its server, where they are files.",
        )

    async def export(self, user_id: str, places: Sequence[tuple[str, str]]) -> AsyncIterator[dict[str, Any]]:
        """Episodes and profiles of these places: EverOS cannot say in which a user has memories."""
        kinds: tuple[ListedMemoryType, ...] = ("episode", "profile")
        for app_id, project_id in places:
            for kind in kinds:
                request = GetRequest(kind, user_id, page_size=_EXPORT_PAGE, app_id=app_id, project_id=project_id)
                async for item in self._pages(request):
                    yield {"kind": kind, **item}

    async def health(self) -> UpstreamHealth:
        try:
            answer = await self._send("GET", "/health", None, min(_HEALTH_TIMEOUT, self._timeout))
            return _as_health(msgspec.json.decode(answer.body, type=_Health))
        except (MemoryGatewayError, *_UNREADABLE) as error:
            reason = "too slow" if isinstance(error, UpstreamTimeout) else "cannot be reached"
            return UpstreamHealth(self.name, healthy=False, capabilities={}, details={"reason": reason})

    async def close(self) -> None:
        await self._reads.close()
        await self._writes.close()

    async def _pages(self, request: GetRequest) -> AsyncIterator[RawItem]:
        """Oldest first, so that what arrives meanwhile comes last and shifts no page."""
        page = 1
        while True:
            wanted = msgspec.structs.replace(request, page=page, sort_order="asc")
            reply = await self._read("get", wanted, _LISTED)
            for item in (*reply.episodes, *reply.profiles):
                yield item
            if reply.count < request.page_size:
                return
            page += 1

    async def _read(self, call: str, request: Struct, reply: Decoder[_Success[Reply]]) -> Reply:
        answer = await self._send("POST", f"{self._calls}/{call}", msgspec.json.encode(request), self._timeout)
        return _decode(answer, reply)

    async def _write(self, call: str, request: Struct, reply: Decoder[_Success[Reply]]) -> Reply:
        body = msgspec.json.encode(request)
        with _faults_translated():
            async with asyncio.timeout(self._timeout):
                answer = await self._writes.send("POST", f"{self._calls}/{call}", body)
        return _decode(answer, reply)

    async def _send(self, method: str, path: str, body: bytes | None, seconds: float) -> Answer:
        """A call that changes nothing: sent again when the connection could not be made or was dropped."""
        with _faults_translated():
            async with asyncio.timeout(seconds):
                for _ in range(_READ_ATTEMPTS - 1):
                    try:
                        return await self._reads.send(method, path, body)
                    except ConnectionError:
                        await asyncio.sleep(_RETRY_PAUSE)
                return await self._reads.send(method, path, body)


@contextmanager
def _faults_translated() -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        _logger.warning("EverOS did not answer in time: %r", error)
        raise UpstreamTimeout("the memory system did not answer in time") from error
    except ConnectionError as error:
        _logger.warning("EverOS cannot be reached: %r", error)
        raise UpstreamUnreachable("the memory system cannot be reached") from error


def _decode(answer: Answer, reply: Decoder[_Success[Reply]]) -> Reply:
    """Raw items come out as they came in. A success that lacks one of the reply's arrays is nonsense."""
    if answer.status not in {200, 202}:
        raise _refusal(answer)
    try:
        return reply.decode(answer.body).data
    except _UNREADABLE as error:
        raise _nonsense(answer, repr(error)) from error


def _refusal(answer: Answer) -> MemoryGatewayError:
    """EverOS's own errors keep status and code. A body without its envelope means that something else answered."""
    try:
        fault = msgspec.json.decode(answer.body, type=_Failure).error
    except _UNREADABLE as error:
        return _nonsense(answer, repr(error))
    status = answer.status
    if status < 400:
        return _nonsense(answer, fault.code)
    _logger.warning("EverOS refused: %s %s: %s", status, fault.code, fault.message)
    if status == 422 and fault.code == "INVALID_INPUT" and _REQUEST_FAULT.match(fault.message):
        return UpstreamRefused(status, fault.code, fault.message)
    said = "the memory system failed" if status >= 500 else "the memory system refused the request"
    return UpstreamRefused(status, fault.code, _SAID_INSTEAD.get(status, said))


def _nonsense(answer: Answer, what: str) -> UpstreamUnreachable:
    _logger.warning("not an answer of EverOS: status %s, %s", answer.status, what)
    return UpstreamUnreachable("the memory system gave an answer that makes no sense")


def _sessions_alone(filters: dict[str, Any] | UnsetType) -> frozenset[str] | None:
    """The sessions of a filter that says nothing else and is valid; None otherwise."""
    if not isinstance(filters, dict) or filters.keys() != {"session_id"}:
        return None
    match filters["session_id"]:
        case str(session):
            return frozenset({session})
        case {"in": [_, *_] as sessions, **rest} if not rest and all(isinstance(one, str) for one in sessions):
            return frozenset(sessions)
    return None


def _first_words(query: str) -> str:
    """All of it where it has no more words than EverOS looks for in reasonable time."""
    if len(query) <= _MOST_WORDS:
        return query
    beyond = next(islice(_WORD.finditer(query), _MOST_WORDS, None), None)
    return query if beyond is None else query[: beyond.start()]


def _as_health(health: _Health) -> UpstreamHealth:
    has = health.capabilities.get
    vector, llm = has("embed", False), has("llm", False)
    capabilities = {
        "keyword": True,
        "vector": vector,
        "hybrid": vector,
        "agentic": vector and llm and has("rerank", False),
        "llm": llm,
        "documents": has("parser", False) and has("multimodal_llm", False),
    }
    return UpstreamHealth(
        EverosUpstream.name,
        health.status == "ok" and health.cascade.healthy and health.memorize_queue.healthy,
        capabilities,
        backlog=health.cascade.pending,
        details={"version": health.version, "queued": health.memorize_queue.pending},
    )
