"""The search's own way in: what most requests are takes it, and spares what the framework does for all kinds.

A search that is asked as a client library asks it (credentials in headers, a JSON body in one piece) is answered here.
Anything else, and whatever is wrong with a request, is left to the route of the same path, which says so.
"""

from collections.abc import Callable, Mapping

import msgspec
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Receive, ReceiveMessage, Scope, Send
from msgspec import Struct

from memory_gateway.gateway.auth import Gatekeeper
from memory_gateway.gateway.errors import send_error
from memory_gateway.gateway.memories.schemas import SearchMemories
from memory_gateway.gateway.memories.service import Memories
from memory_gateway.kit.errors import MemoryGatewayError
from memory_gateway.kit.http_json import decode_json

PATH = "/memories/search"
_LONGEST = 1 << 16  # a longer body is read only when its sender is known
_DIGITS = 9
_encode = msgspec.json.Encoder().encode


class _Caller(Struct, frozen=True):
    """What the headers of such a request say."""

    user_id: str
    user_key: str


class SearchDoor:
    """An ASGI app around the router."""

    def __init__(self, app: ASGIApp, gatekeeper: Gatekeeper, memories: Memories, max_body_bytes: int) -> None:
        self._app = app
        self._gatekeeper = gatekeeper
        self._memories = memories
        self._longest = min(max_body_bytes, _LONGEST)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] != PATH or scope["type"] != ScopeType.HTTP or scope["method"] != "POST":
            return await self._app(scope, receive, send)
        caller = None if scope["query_string"] else self._caller(dict(scope["headers"]))
        if caller is None:
            return await self._app(scope, receive, send)
        event = await receive()
        if event["type"] == "http.request" and not event.get("more_body"):
            try:
                query = await self._admitted(caller, event["body"])
            except MemoryGatewayError:
                query = None
            if query is not None:
                return await self._answer(scope, receive, send, caller.user_id, query)
        return await self._app(scope, _again(event, receive), send)

    def _caller(self, headers: Mapping[bytes, bytes]) -> _Caller | None:
        user_id, user_key = headers.get(b"x-user-id"), headers.get(b"x-user-key")
        length = headers.get(b"content-length", b"")
        if user_id is None or user_key is None or headers.get(b"content-type") != b"application/json":
            return None
        if not length.isdigit() or len(length) > _DIGITS or int(length) > self._longest:
            return None
        return _Caller(user_id.decode("latin-1"), user_key.decode("latin-1"))

    async def _admitted(self, caller: _Caller, body: bytes) -> SearchMemories | None:
        """The query of a user with a good key, who speaks for no one else in the body."""
        if len(body) > self._longest:
            return None
        query: SearchMemories = decode_json(body, SearchMemories)
        if query.user_id is not None and query.user_id != caller.user_id:
            return None
        await self._gatekeeper.known(caller.user_id, caller.user_key)
        return query

    async def _answer(
        self, scope: HTTPScope, receive: Receive, send: Send, user_id: str, query: SearchMemories
    ) -> None:
        scope["path_template"] = PATH
        try:
            body = _encode(await self._memories.search(user_id, query))
        except Exception as error:  # noqa: BLE001  # told as a route's would be
            await send_error(error, scope, receive, send)
            return
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": False})


def search_door(memories: Memories, max_body_bytes: int) -> Callable[[ASGIApp, Gatekeeper], ASGIApp]:
    """For `build_app`."""
    return lambda app, gatekeeper: SearchDoor(app, gatekeeper, memories, max_body_bytes)


def _again(event: ReceiveMessage, receive: Receive) -> Receive:
    """What was received already, then what comes."""
    first = [event]

    async def received() -> ReceiveMessage:
        return first.pop() if first else await receive()

    return received
