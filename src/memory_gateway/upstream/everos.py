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
from typing import Any, Final, Literal, TypeVar

import httpx
import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

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
_READ_LIMITS: Final = httpx.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=2.0)
_WRITE_LIMITS: Final = httpx.Limits(max_connections=100, max_keepalive_connections=0)

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
# Their fields have defaults for the embedded engine's sake; EverOS always sends every one.
_SENT_WHOLE: Final = frozenset({SearchReply, GetReply})
_UNREADABLE: Final = (msgspec.MsgspecError, RecursionError)

Reply = TypeVar("Reply", AddReply, FlushReply, SearchReply, GetReply)


class _AddBody(Struct, frozen=True):
    session_id: str
    app_id: str
    project_id: str
    messages: Raw | tuple[Message, ...]


class _Success(Struct, frozen=True):
    data: dict[str, Any]


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
    """A running EverOS server. ``timeout`` in seconds bounds a whole call; a given ``client`` stays its giver's."""

    name = "everos"

    def __init__(
        self,
        base_url: str,
        prefix: Literal["v1", "v2"] = "v1",
        timeout: float = 60.0,
        shares_files: bool = False,
        client: httpx.AsyncClient | None = None,
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
        self._health_url = f"{base_url.rstrip('/')}/health"
        self._memory_url = f"{base_url.rstrip('/')}/api/{prefix}/memory"
        self._timeout = timeout
        self._owns_clients = client is None
        self._reads = client or _new_client(_READ_LIMITS)
        self._writes = client or _new_client(_WRITE_LIMITS)

    async def add(self, request: AddRequest, caller: Caller) -> AddReply:  # noqa: ARG002  # EverOS knows no callers
        messages = request.messages if request.wire_messages is None else request.wire_messages
        body = _AddBody(request.session_id, request.app_id, request.project_id, messages)
        return await self._write("add", body, AddReply)

    async def flush(self, request: FlushRequest, caller: Caller) -> FlushReply:  # noqa: ARG002  # knows no callers
        return await self._write("flush", request, FlushReply)

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
            return await self._read("search", request, SearchReply)
        wider = msgspec.structs.replace(request, filters=UNSET, top_k=_MAX_TOP_K)
        found = await self._read("search", wider, SearchReply)
        cases = [case for case in found.agent_cases if case.get("session_id") in sessions]
        return SearchReply(agent_cases=cases if request.top_k == -1 else cases[: request.top_k])

    async def get(self, request: GetRequest, caller: Caller) -> GetReply:  # noqa: ARG002  # EverOS knows no callers
        return await self._read("get", request, GetReply)

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
            response = await self._send("GET", self._health_url, None, min(_HEALTH_TIMEOUT, self._timeout))
            return _as_health(msgspec.json.decode(response.content, type=_Health))
        except (MemoryGatewayError, *_UNREADABLE) as error:
            reason = "too slow" if isinstance(error, UpstreamTimeout) else "cannot be reached"
            return UpstreamHealth(self.name, healthy=False, capabilities={}, details={"reason": reason})

    async def close(self) -> None:
        if self._owns_clients:
            await self._reads.aclose()
            await self._writes.aclose()

    async def _pages(self, request: GetRequest) -> AsyncIterator[RawItem]:
        """Oldest first, so that what arrives meanwhile comes last and shifts no page."""
        page = 1
        while True:
            wanted = msgspec.structs.replace(request, page=page, sort_order="asc")
            reply = await self._read("get", wanted, GetReply)
            for item in (*reply.episodes, *reply.profiles):
                yield item
            if reply.count < request.page_size:
                return
            page += 1

    async def _read(self, call: str, request: Struct, reply: type[Reply]) -> Reply:
        response = await self._send("POST", f"{self._memory_url}/{call}", msgspec.json.encode(request), self._timeout)
        return _decode(response, reply)

    async def _write(self, call: str, request: Struct, reply: type[Reply]) -> Reply:
        content = msgspec.json.encode(request)
        with _faults_translated():
            async with asyncio.timeout(self._timeout):
                response = await self._once(self._writes, "POST", f"{self._memory_url}/{call}", content)
        return _decode(response, reply)

    async def _send(self, method: str, url: str, content: bytes | None, seconds: float) -> httpx.Response:
        """A call that changes nothing: sent again when the connection could not be made or was dropped."""
        with _faults_translated():
            async with asyncio.timeout(seconds):
                for _ in range(_READ_ATTEMPTS - 1):
                    try:
                        return await self._once(self._reads, method, url, content)
                    except (httpx.NetworkError, httpx.RemoteProtocolError):
                        await asyncio.sleep(_RETRY_PAUSE)
                return await self._once(self._reads, method, url, content)

    async def _once(self, client: httpx.AsyncClient, method: str, url: str, content: bytes | None) -> httpx.Response:
        headers = {"Content-Type": "application/json"} if content is not None else {}
        timeout = httpx.Timeout(self._timeout, connect=min(_CONNECT_TIMEOUT, self._timeout))
        return await client.request(method, url, content=content, headers=headers, timeout=timeout)


def _new_client(limits: httpx.Limits) -> httpx.AsyncClient:
    """Proxies of the environment are not asked: the server is named in the settings and mostly on this machine."""
    return httpx.AsyncClient(limits=limits, trust_env=False)


@contextmanager
def _faults_translated() -> Iterator[None]:
    try:
        yield
    except (TimeoutError, httpx.TimeoutException) as error:
        _logger.warning("EverOS did not answer in time: %r", error)
        raise UpstreamTimeout("the memory system did not answer in time") from error
    except httpx.HTTPError as error:
        _logger.warning("EverOS cannot be reached: %r", error)
        raise UpstreamUnreachable("the memory system cannot be reached") from error


def _decode(response: httpx.Response, reply: type[Reply]) -> Reply:
    """Raw items come out as they came in. A success that lacks one of the reply's arrays is nonsense."""
    if response.status_code not in {200, 202}:
        raise _refusal(response)
    try:
        envelope = msgspec.json.decode(response.content, type=_Success)
        if reply in _SENT_WHOLE and (lacking := set(reply.__struct_fields__) - envelope.data.keys()):
            raise _nonsense(response, f"without {sorted(lacking)}")
        return msgspec.convert(envelope.data, reply)
    except _UNREADABLE as error:
        raise _nonsense(response, repr(error)) from error


def _refusal(response: httpx.Response) -> MemoryGatewayError:
    """EverOS's own errors keep status and code. A body without its envelope means that something else answered."""
    try:
        fault = msgspec.json.decode(response.content, type=_Failure).error
    except _UNREADABLE as error:
        return _nonsense(response, repr(error))
    status = response.status_code
    if status < 400:
        return _nonsense(response, fault.code)
    _logger.warning("EverOS refused: %s %s: %s", status, fault.code, fault.message)
    if status == 422 and fault.code == "INVALID_INPUT" and _REQUEST_FAULT.match(fault.message):
        return UpstreamRefused(status, fault.code, fault.message)
    said = "the memory system failed" if status >= 500 else "the memory system refused the request"
    return UpstreamRefused(status, fault.code, _SAID_INSTEAD.get(status, said))


def _nonsense(response: httpx.Response, what: str) -> UpstreamUnreachable:
    _logger.warning("not an answer of EverOS: %s %s, %s", response.request.url, response.status_code, what)
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
