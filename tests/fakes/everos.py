"""A stand-in for an EverOS server: it answers from captures of a real one and keeps the requests it got."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx
import msgspec
from msgspec import Struct

from memory_gateway.upstream.everos import EverosUpstream
from memory_gateway.upstream.wire import Answer

CAPTURES = Path(__file__).parent.parent / "contract" / "captures"
BASE_URL = "http://everos.test"
EMPTY: dict[str, list[Any]] = {
    "episodes": [],
    "profiles": [],
    "agent_cases": [],
    "agent_skills": [],
    "unprocessed_messages": [],
}

_PLACE = {"app_id": "default", "project_id": "default"}
DEFAULTS: dict[str, dict[str, Any]] = {
    "add": _PLACE,
    "flush": _PLACE,
    "search": {
        **_PLACE,
        "method": "hybrid",
        "top_k": -1,
        "include_profile": False,
        "enable_llm_rerank": False,
    },
    "get": {**_PLACE, "page": 1, "page_size": 20, "sort_by": "timestamp", "sort_order": "desc"},
}


class Request(Struct, frozen=True):
    method: str
    path: str
    body: dict[str, Any] | None

    @property
    def call(self) -> str:
        return self.path.rsplit("/", 1)[1]


class Capture(Struct, frozen=True):
    """One exchange with a real EverOS 1.5.1."""

    request: Request
    status: int
    response: dict[str, Any]
    note: str


def capture(name: str) -> Capture:
    return msgspec.json.decode((CAPTURES / f"{name}.json").read_bytes(), type=Capture)


def capture_names() -> list[str]:
    return sorted(path.stem for path in CAPTURES.glob("*.json") if path.stem != "validation-errors")


def with_defaults(call: str, body: dict[str, Any] | None) -> dict[str, Any]:
    """The body with what EverOS fills in, so that a request that spells the defaults out is the same request."""
    return {**DEFAULTS.get(call, {}), **(body or {})}


class TransportWire:
    """A `Wire` over an httpx transport, which stands in for the network here, or looks at what goes through."""

    def __init__(self, transport: httpx.AsyncBaseTransport, base_url: str = BASE_URL) -> None:
        # Without a timeout: the adapter has its own.
        self._client = httpx.AsyncClient(transport=transport, base_url=base_url, timeout=None)

    async def send(self, method: str, path: str, body: bytes | None = None) -> Answer:
        try:
            headers = {} if body is None else {"content-type": "application/json"}
            response = await self._client.request(method, path, content=body, headers=headers)
        except httpx.TimeoutException as error:
            raise TimeoutError(str(error)) from error
        except httpx.TransportError as error:
            raise ConnectionError(str(error)) from error
        return Answer(response.status_code, response.content)

    async def close(self) -> None:
        await self._client.aclose()


class EverosReplay(httpx.AsyncBaseTransport):
    """Answers a request that was captured; any other is an `AssertionError` that shows its body."""

    def __init__(self, captures: Iterable[Capture] | None = None) -> None:
        self._captures = list(captures) if captures is not None else [capture(name) for name in capture_names()]
        self.requests: list[httpx.Request] = []

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [body_of(request) for request in self.requests]

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        self.requests.append(request)
        found = next((known for known in self._captures if _same(known.request, request)), None)
        assert found is not None, f"not captured: {request.method} {request.url.path} {body_of(request)}"
        return httpx.Response(found.status, json=found.response)


def replaying(*captures: Capture, **options: Any) -> tuple[EverosUpstream, EverosReplay]:
    """The adapter on a replay of these captures; of all, when none is named."""
    transport = EverosReplay(captures or None)
    return EverosUpstream(BASE_URL, wire=TransportWire(transport), **options), transport


def answering(status: int, body: object, **options: Any) -> EverosUpstream:
    """The adapter on a server that gives this answer to everything. ``body``: bytes as they are, else JSON."""
    content = body if isinstance(body, bytes) else msgspec.json.encode(body)
    transport = httpx.MockTransport(lambda _: httpx.Response(status, content=content))
    return EverosUpstream(BASE_URL, wire=TransportWire(transport), **options)


def body_of(request: httpx.Request) -> dict[str, Any]:
    body: dict[str, Any] = msgspec.json.decode(request.content) if request.content else {}
    return body


def _same(known: Request, request: httpx.Request) -> bool:
    if (known.method, known.path) != (request.method, request.url.path):
        return False
    return with_defaults(known.call, body_of(request)) == with_defaults(known.call, known.body)


class EverosTurns(httpx.AsyncBaseTransport):
    """Plays its turns in order and repeats the last: an exception is raised, anything else is a 200 with this data."""

    def __init__(self, *turns: Exception | dict[str, Any]) -> None:
        self._turns = list(turns)
        self.requests: list[httpx.Request] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        turn = self._turns.pop(0) if len(self._turns) > 1 else self._turns[0]
        if isinstance(turn, Exception):
            raise turn
        return httpx.Response(200, json={"request_id": "1", "data": turn})

    def upstream(self, **options: Any) -> EverosUpstream:
        return EverosUpstream(BASE_URL, wire=TransportWire(self), **options)
