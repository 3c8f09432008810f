"""Who may speak to the service at all. It knows no users' keys, so it must be out of reach of everybody else.

A web page that somebody opens here could send requests to a loopback address. It cannot choose the ``Origin`` that the
browser names, and where it had its own name point here (DNS rebinding) the ``Host`` is that name. Beyond loopback every
call carries the service token, which no page knows.
"""

import hashlib
import hmac
import ipaddress
import re
from typing import Any

from litestar import Request

from memory_gateway.kit.errors import Forbidden, Unauthorized
from memory_gateway.kit.http_queries import refuse_bad_address
from memory_gateway.settings import SettingsError

OPEN_TO_ALL = {"open_to_all": True}

AnyRequest = Request[Any, Any, Any]

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_EVERY_ADDRESS = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - compared with, never bound
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:@/]+)(?::[0-9]*)?")


class Access:
    """The rules for a service bound to ``host``. `SettingsError` where others can reach it and there is no token."""

    def __init__(self, host: str, service_token: str | None) -> None:
        token = (service_token or "").strip()
        if not token and not is_loopback(host):
            raise SettingsError(f"the Memory-Service on {host} can be reached by others: set service_token")
        self._digest = _digest(token) if token else None
        self._names = None if host in _EVERY_ADDRESS else _LOOPBACK | {f"[{host}]" if ":" in host else host.lower()}

    def check_addresses(self, request: AnyRequest) -> None:
        """`Forbidden` unless the request was meant for this server and no other site's page sent it."""
        hosts = _values(request, b"host")
        if not hosts or not all(self._is_own(host) for host in hosts):
            raise Forbidden("Host not allowed")
        from_own_page = all(self._is_own_origin(origin, hosts) for origin in _values(request, b"origin"))
        if not from_own_page or "cross-site" in _values(request, b"sec-fetch-site"):
            raise Forbidden("Origin not allowed")

    def check_token(self, request: AnyRequest) -> None:
        """`Unauthorized` where there is a token and the request has another or none."""
        if self._digest is None:
            return
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(_digest(token.strip()), self._digest):
            raise Unauthorized("service token missing or wrong")

    def _is_own(self, authority: str) -> bool:
        name = _AUTHORITY.fullmatch(authority)
        return name is not None and (self._names is None or name[1] in self._names)

    def _is_own_origin(self, origin: str, hosts: list[str]) -> bool:
        """Bound to every address, the service does not know its names: then a page's origin is the host it calls."""
        scheme, _, authority = origin.partition("://")
        own = authority in hosts if self._names is None else self._is_own(authority)
        return own and scheme in {"http", "https"}


async def require_access(request: AnyRequest) -> None:
    """Runs before every route. One with ``opt=OPEN_TO_ALL`` asks for no token.

    Not a guard: for those the framework copies the whole route, at every request.
    """
    access: Access = request.app.state.access
    access.check_addresses(request)
    if "open_to_all" not in request.route_handler.opt:
        access.check_token(request)
    refuse_bad_address(request, request.route_handler)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that is bound to ``host``."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _values(request: AnyRequest, name: bytes) -> list[str]:
    return [value.decode("latin-1").lower() for header, value in request.scope["headers"] if header == name]


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
