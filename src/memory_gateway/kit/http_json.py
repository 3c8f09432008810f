"""JSON from outside: straight into a struct, with faults that name the field.

Of two members with one name the last wins, as msgspec reads JSON. ``NaN`` and ``Infinity`` are not JSON; ``3.0`` is
not an integer.
"""

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from memory_gateway.kit.errors import InvalidInput, MalformedRequest, MemoryGatewayError
from memory_gateway.kit.text import has_nul_or_surrogate

_PLACE = re.compile(r" - at `(?:key` in `)?\$(.*)`$")
_INDEX = re.compile(r"\[(\d+|\*)\]")
_UNKNOWN_OR_MISSING = re.compile(r"Object (?:contains unknown|missing required) field `(.+?)`")
_FIELD_FIRST = re.compile(r"([A-Za-z_][\w.]*): (.+)", re.DOTALL)


def decode_json(body: bytes, kind: Any) -> Any:
    """The body as `kind`. Faults: `MalformedRequest` for what is no JSON, `InvalidInput` naming the field otherwise.

    A struct's ``__post_init__`` names its field by raising ``ValueError("field: what is wrong")``.
    """
    try:
        value = _decoder(kind).decode(body)
    except msgspec.ValidationError as error:
        raise invalid_input(str(error)) from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise unreadable(body, error) from error
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


def unreadable(body: bytes, error: Exception) -> MemoryGatewayError:
    """What is wrong with a body that msgspec cannot read at all."""
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
