"""Request bodies: JSON straight into the route's own struct; credentials and content are read by the same rules."""

from typing import Any

import msgspec
from litestar import Request
from litestar.datastructures import State

from memory_gateway.kit.errors import UnsupportedFormat
from memory_gateway.kit.http_json import decode_json, unreadable


class BodyCredentials(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of every JSON body: credentials may stand in it. The guard reads them; a service never does."""

    user_id: str | None = None
    user_key: str | None = None


class _Presented(msgspec.Struct):
    user_id: object = None
    user_key: object = None


_SAYS_JSON = (b"content-type", b"application/json")
_presented = msgspec.json.Decoder(_Presented)


class GatewayRequest(Request[str, None, State]):
    """A request whose JSON body is decoded straight into the type of the route's ``data`` parameter.

    What every such request has is read from its raw headers: the framework's table of them takes longer than the body.
    """

    @property
    def content_length(self) -> int | None:
        announced = dict(self.scope["headers"]).get(b"content-length")
        if announced is None:
            return None
        return int(announced) if announced.isdigit() else super().content_length  # which says what is wrong with it

    async def json(self) -> Any:
        field = self.route_handler.parsed_data_field
        return decode_json(await self.json_bytes(), Any if field is None else field.annotation)

    async def json_bytes(self) -> bytes:
        """The body; `UnsupportedFormat` unless it is empty or says it is JSON."""
        body = await self.body()
        if body and _SAYS_JSON not in self.scope["headers"] and self.content_type[0] != "application/json":
            raise UnsupportedFormat("the content type of this endpoint is application/json")
        return body

    async def body_credentials(self) -> tuple[str | None, str | None]:
        """``user_id`` and ``user_key`` of a JSON object, whatever else is in it; what is not text counts as absent."""
        body = await self.json_bytes()
        if not body:
            return None, None
        try:
            presented = _presented.decode(body)
        except msgspec.ValidationError:
            return None, None
        except (msgspec.DecodeError, RecursionError) as error:
            raise unreadable(body, error) from error
        return _text(presented.user_id), _text(presented.user_key)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
