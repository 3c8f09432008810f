"""Request bodies: JSON straight into the route's own struct, with faults that name the field.

Of two members with one name the last wins, as msgspec reads JSON; credentials and content are read by the same rule.
``NaN`` and ``Infinity`` are not JSON; ``3.0`` is not an integer.
"""

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec
from litestar import Request
from litestar.datastructures import State

from memory_gateway.kit.errors import InvalidInput, MalformedRequest, MemoryGatewayError, UnsupportedFormat
from memory_gateway.kit.text import has_nul_or_surrogate

_PLACE = re.compile(r" - at `(?:key` in `)?\$(.*)`$")
_INDEX = re.compile(r"\[(\d+|\*)\]")
_UNKNOWN_OR_MISSING = re.compile(r"Object (?:contains unknown|missing required) field `(.+?)`")
_FIELD_FIRST = re.compile(r"([A-Za-z_][\w.]*): (.+)", re.DOTALL)


class BodyCredentials(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of every JSON body: credentials may stand in it. The guard reads them; a service never does."""

    user_id: str | None = None
    user_key: str | None = None


class _Presented(msgspec.Struct):
    user_id: object = None
    user_key: object = None


class GatewayRequest(Request[str, None, State]):
    """A request whose JSON body is decoded straight into the type of the route's ``data`` parameter."""

    async def json(self) -> Any:
        field = self.route_handler.parsed_data_field
        return decode_json(await self.json_bytes(), Any if field is None else field.annotation)

    async def json_bytes(self) -> bytes:
        """The body; `UnsupportedFormat` unless it is empty or says it is JSON."""
        body = await self.body()
        if body and self.content_type[0] != "application/json":
            raise UnsupportedFormat("the content type of this endpoint is application/json")
        return body

    async def body_credentials(self) -> tuple[str | None, str | None]:
        """``user_id`` and ``user_key`` of a JSON object, whatever else is in it; what is not text counts as absent."""
        body = await self.json_bytes()
        if not body:
            return None, None
        try:
            presented = _decoder(_Presented).decode(body)
        except msgspec.ValidationError:
            return None, None
        except (msgspec.DecodeError, RecursionError) as error:
            raise _unreadable(body, error) from error
        return _text(presented.user_id), _text(presented.user_key)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def decode_json(body: bytes, kind: Any) -> Any:
    """The body as `kind`. Faults: `MalformedRequest` for what is no JSON, `InvalidInput` naming the field otherwise.

    A struct's ``__post_init__`` names its field by raising ``ValueError("field: what is wrong")``.
    """
    try:
        value = _decoder(kind).decode(body)
    except msgspec.ValidationError as error:
        raise invalid_input(str(error)) from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise _unreadable(body, error) from error
    if b"\\u0000" in body:
        _refuse_unclean_texts(msgspec.json.decode(body))
    return value


@lru_cache(256)
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def invalid_input(message: str, at: str = "") -> InvalidInput:
    """msgspec's message as our error: its path becomes ``messages.0.content.1.base64``."""
    place = _PLACE.search(message)
    path = [at] if at else []
    if place:
        message = message[: place.start()]
        path.append(_INDEX.sub(r".\1", place[1].replace("[...]", "[*]")).strip("."))
    if named := _UNKNOWN_OR_MISSING.fullmatch(message):
        path.append(named[1])
        message = "unknown field" if "unknown" in message else "required"
    elif own := _FIELD_FIRST.fullmatch(message):
        path.append(own[1])
        message = own[2]
    return InvalidInput(message, field=".".join(part for part in path if part) or "body")


def _unreadable(body: bytes, error: Exception) -> MemoryGatewayError:
    if isinstance(error, RecursionError):
        return MalformedRequest("the body is nested too deeply")
    if b"\\u" in body:
        try:
            _refuse_unclean_texts(json.loads(body))
        except InvalidInput as unclean:
            return unclean
        except (ValueError, RecursionError):
            pass  # no JSON at all: said below
    return MalformedRequest("the body is not valid JSON in UTF-8")


def refuse_unclean(text: str, field: str) -> None:
    """`InvalidInput` for NUL and lone surrogates: databases cut the one, encoders refuse the other."""
    if has_nul_or_surrogate(text):
        raise InvalidInput("NUL and lone surrogates are not allowed", field=field)


def _refuse_unclean_texts(value: Any) -> None:
    for path, text in _texts(value):
        if has_nul_or_surrogate(text):
            refuse_unclean(text, path.encode("utf-8", "replace").decode().replace("\0", "?") or "body")


def _texts(value: Any) -> Iterator[tuple[str, str]]:
    """Every text in a JSON value, member names included, with its dotted path."""
    waiting = [("", value)]
    while waiting:
        path, item = waiting.pop()
        if isinstance(item, str):
            yield path, item
        elif isinstance(item, dict):
            for name, member in item.items():
                inner = f"{path}.{name}" if path else name
                yield inner, name
                waiting.append((inner, member))
        elif isinstance(item, list):
            waiting.extend((f"{path}.{index}" if path else str(index), member) for index, member in enumerate(item))
