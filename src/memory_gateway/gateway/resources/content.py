"""Handing out a file: byte ranges (RFC 9110) and the original name (RFC 6266)."""

import re
from typing import NamedTuple
from urllib.parse import quote

_ONE_RANGE = re.compile(r"bytes=(?:(\d{1,18})-(\d{0,18})|-(\d{1,18}))", re.IGNORECASE | re.ASCII)
_NOT_PLAIN = re.compile(r"[^ !#-\[\]-~]")


class ByteRange(NamedTuple):
    """``first`` up to and with ``last``."""

    first: int
    last: int


class Unsatisfiable(Exception):
    """A well-formed range that holds no byte of the file."""


def byte_range(header: str | None, size: int) -> ByteRange | None:
    """What a ``Range`` header asks for; None for the whole: no header, several ranges, or not understood.

    Raises `Unsatisfiable` where the range lies beyond the end.
    """
    match = _ONE_RANGE.fullmatch(header.strip()) if header else None
    if match is None:
        return None
    if match[3] is not None:
        first, last = max(0, size - int(match[3])), size - 1
    else:
        first, last = int(match[1]), min(int(match[2]) if match[2] else size - 1, size - 1)
        if match[2] and int(match[2]) < first:
            return None
    if first > last:
        raise Unsatisfiable
    return ByteRange(first, last)


def disposition(name: str) -> str:
    """``attachment``, so that a browser never runs it, with the name as plain text and in full."""
    return f"attachment; filename=\"{_NOT_PLAIN.sub('_', name)}\"; filename*=UTF-8''{quote(name, safe='')}"
