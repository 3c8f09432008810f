"""Who is calling: the guards of every route.

Credentials are the headers ``X-User-ID`` and ``X-User-Key``; where neither is sent, ``user_id`` and ``user_key`` of a
JSON body, or of the form fields before a file. Guards run before the body is checked, so 401 comes before 422.
Nothing is cached: a rotated key is dead for the next request.
"""

import hashlib
import hmac
from typing import Any, cast

from litestar.connection import ASGIConnection
from litestar.handlers.base import BaseRouteHandler
from litestar.openapi.spec import SecurityRequirement

from memory_gateway.gateway.accounts.service import Accounts
from memory_gateway.gateway.audit.service import ADMIN
from memory_gateway.gateway.bodies import GatewayRequest
from memory_gateway.gateway.limits.buckets import TokenBuckets
from memory_gateway.kit.errors import Forbidden, NotFound, Unauthorized
from memory_gateway.kit.http_queries import refuse_bad_address

Connection = ASGIConnection[Any, Any, Any, Any]

USER_SECURITY: list[SecurityRequirement] = [{"UserID": [], "UserKey": []}]
ADMIN_SECURITY: list[SecurityRequirement] = [{"AdminKey": []}]
OWNER_OR_ADMIN_SECURITY: list[SecurityRequirement] = [*USER_SECURITY, *ADMIN_SECURITY]

CREDENTIALS_IN_FORM = {"credentials_in_form": True}
ALSO_WHILE_ERASING = {"also_while_erasing": True}
_LONGEST_ADDRESS = 64


class Gatekeeper:
    """Checks keys and counts failures.

    User keys hold 256 random bits, so a right one always passes, and the failure limit only sheds load. An admin key
    may be chosen by a person, so an address that failed too often is refused before its next guess is looked at.
    """

    def __init__(
        self, accounts: Accounts, admin_key: bytes, *, requests: TokenBuckets | None, failures: TokenBuckets
    ) -> None:
        self._accounts = accounts
        self._admin_digest = hashlib.sha256(admin_key).digest()
        self._requests = requests
        self._failures = failures

    async def admit(
        self, connection: Connection, user_id: str | None, user_key: str | None, *, while_erasing: bool = False
    ) -> str:
        """Make this the connection's user, or raise `Unauthorized` or `TooManyRequests`."""
        try:
            authenticated = await self.known(user_id, user_key, while_erasing=while_erasing)
        except Unauthorized:
            self._failures.take(_address(connection))
            raise
        connection.scope["user"] = authenticated
        return authenticated

    async def known(self, user_id: str | None, user_key: str | None, *, while_erasing: bool = False) -> str:
        """As `admit`, of no connection: no failure is counted."""
        authenticated = await self._accounts.authenticate(user_id, user_key, while_erasing=while_erasing)
        if self._requests is not None:
            self._requests.take(authenticated)
        return authenticated

    def admit_admin(self, connection: Connection, admin_key: bytes) -> None:
        name = f"admin {_address(connection)}"
        self._failures.check(name)
        if not hmac.compare_digest(hashlib.sha256(admin_key).digest(), self._admin_digest):
            self._failures.take(name)
            raise Unauthorized("the admin key does not match")
        connection.scope["auth"] = ADMIN


async def require_user(connection: Connection, handler: BaseRouteHandler) -> None:
    """Guard: a user with a good key, who speaks for no one else in the body (`Forbidden`)."""
    headers = _headers(connection)
    user_id, user_key = headers.get(b"x-user-id"), headers.get(b"x-user-key")
    gatekeeper = _gatekeeper(connection)
    while_erasing = "also_while_erasing" in handler.opt
    if user_id is not None or user_key is not None:
        await gatekeeper.admit(connection, _decoded(user_id), _decoded(user_key), while_erasing=while_erasing)
        if _takes_json(handler):
            _refuse_other_user(connection, (await _body_credentials(connection))[0])
    elif _takes_json(handler):
        await gatekeeper.admit(connection, *await _body_credentials(connection), while_erasing=while_erasing)
    elif "credentials_in_form" not in handler.opt:
        await gatekeeper.admit(connection, None, None)
    refuse_bad_address(connection, handler)


async def require_admin(connection: Connection, handler: BaseRouteHandler) -> None:
    """Guard: the admin key in ``X-Admin-Key``."""
    _gatekeeper(connection).admit_admin(connection, _headers(connection).get(b"x-admin-key", b""))
    refuse_bad_address(connection, handler)


async def require_owner_or_admin(connection: Connection, handler: BaseRouteHandler) -> None:
    """Guard: the admin, or the user that the path's ``user_id`` names; another user's account is `NotFound`."""
    if b"x-admin-key" in _headers(connection):
        return await require_admin(connection, handler)
    await require_user(connection, handler)
    if current_user(connection) != connection.path_params["user_id"]:
        raise NotFound
    return None


async def admit_form(request: GatewayRequest, user_id: str | None, user_key: str | None) -> str:
    """The caller of a multipart request, from its headers or else from the form fields that precede the file.

    Call it before the file part is read. Raises as the guard does.
    """
    if request.scope.get("user") is None:
        return await _gatekeeper(request).admit(request, user_id, user_key)
    _refuse_other_user(request, user_id)
    return current_user(request)


def current_user(connection: Connection) -> str:
    """The authenticated user's id."""
    user_id: str | None = connection.scope.get("user")
    if user_id is None:
        raise Unauthorized
    return user_id


def acting(connection: Connection) -> str:
    """Who acts, for the audit log: the user's id, or `ADMIN`."""
    return ADMIN if connection.scope.get("auth") == ADMIN else current_user(connection)


def _gatekeeper(connection: Connection) -> Gatekeeper:
    gatekeeper: Gatekeeper = connection.app.state.gatekeeper
    return gatekeeper


def _headers(connection: Connection) -> dict[bytes, bytes]:
    return dict(connection.scope["headers"])


def _decoded(header: bytes | None) -> str | None:
    return None if header is None else header.decode("latin-1")


def _address(connection: Connection) -> str:
    client = connection.scope.get("client")  # as a proxy before the gateway says it, whatever that is
    return client[0][:_LONGEST_ADDRESS] if client else ""


def _takes_json(handler: BaseRouteHandler) -> bool:
    return handler.parsed_data_field is not None


async def _body_credentials(connection: Connection) -> tuple[str | None, str | None]:
    return await cast("GatewayRequest", connection).body_credentials()


def _refuse_other_user(connection: Connection, user_id: str | None) -> None:
    if user_id is not None and user_id != current_user(connection):
        raise Forbidden("the body names another user than the headers")
