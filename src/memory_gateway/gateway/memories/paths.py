"""Memory ids in paths, exact to the byte.

A server decodes the path once, so an id's own ``/`` (``%2F``) would look like one between segments. This stands
before the router and writes the id's segment anew from the raw path, wholly encoded; the routes decode it.
"""

from urllib.parse import quote, unquote_to_bytes

from litestar.types import ASGIApp, Receive, Scope, Send

from memory_gateway.kit.errors import InvalidInput, NotFound
from memory_gateway.kit.http_json import refuse_unclean

_PREFIX = b"/memories/"
_ACTIONS = {"POST": {b"restore"}, "DELETE": {b"override"}, "GET": {b"history"}}
MAX_ID = 512


class ExactMemoryPaths:
    """An ASGI app around the router."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].startswith("/memories/") and scope.get("raw_path"):
            scope["path"] = _routed(str(scope.get("method")), scope["raw_path"], scope["path"])
        await self._app(scope, receive, send)


def _routed(method: str, raw_path: bytes, path: str) -> str:
    raw = raw_path.partition(b"?")[0]
    if not raw.startswith(_PREFIX):
        return path
    name, _, last = raw.removeprefix(_PREFIX).rpartition(b"/")
    if name and last in _ACTIONS.get(method, ()):
        return f"/memories/{_encoded(name)}/{last.decode()}"
    if method not in {"PUT", "DELETE"} or raw == _PREFIX:
        return path
    return f"/memories/{_encoded(raw.removeprefix(_PREFIX))}"


def _encoded(name: bytes) -> str:
    """The first byte always, so that an id is never taken for a fixed path such as ``search``."""
    first, rest = unquote_to_bytes(name)[:1], unquote_to_bytes(name)[1:]
    return "".join(f"%{byte:02X}" for byte in first) + quote(rest, safe="")


def memory_id_of(segment: str) -> str:
    """The id behind a path parameter. `InvalidInput` for what cannot be one."""
    try:
        memory_id = unquote_to_bytes(segment).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput("not valid UTF-8", field="memory_id") from error
    refuse_unclean(memory_id, "memory_id")
    if len(memory_id) > MAX_ID:
        raise NotFound
    return memory_id
