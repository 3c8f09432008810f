"""A text file in parts, each a message of its own, for an upstream that never splits a message.

Its language model reads a message whole, so a long one is cut off or refused there.
"""

from pathlib import Path

from msgspec import Struct

from memory_gateway.documents.extract import LIMIT_CHARS
from memory_gateway.documents.plain import decode
from memory_gateway.documents.sniff import is_text
from memory_gateway.gateway.resources.schemas import Resource

PART_CHARS = 8_000
PARTS_AT_ONCE = 4
"""In one request, so that it is answered in the time of a request."""
_LONGEST_CHARACTER = 4  # bytes, in every encoding that `decode` knows
_ENDS = ("\n\n", "\n", "。", ". ", " ")


class Parts(Struct, frozen=True):
    """``truncated``: there was more text than is sent."""

    texts: tuple[str, ...]
    truncated: bool


def goes_in_parts(resource: Resource) -> bool:
    """Whether it may be too long for one message. Only of plain text is it known where it may be cut."""
    return resource.content_type == "doc" and is_text(resource.mime_type) and resource.size > PART_CHARS


def goes_at_once(resource: Resource) -> bool:
    """Whether one request holds all of it."""
    return resource.size <= PART_CHARS * PARTS_AT_ONCE // 2  # a part may be cut after half its length


def read_parts(path: Path) -> Parts | None:
    """The file's text; None where it is none, or says nothing."""
    most = LIMIT_CHARS * _LONGEST_CHARACTER
    with path.open("rb") as file:
        content = file.read(most)
        more = bool(file.read(1))
    text = decode(content)
    if text is None or not text.strip():
        return None
    return Parts(tuple(_split(text[:LIMIT_CHARS])), truncated=more or len(text) > LIMIT_CHARS)


def _split(text: str) -> list[str]:
    parts = []
    start = 0
    while start < len(text):
        end = _end(text, start)
        if part := text[start:end].strip():
            parts.append(part)
        start = end
    return parts


def _end(text: str, start: int) -> int:
    """After a paragraph, or else a line, a sentence, a word; the second half of a part is looked through."""
    end = start + PART_CHARS
    if end >= len(text):
        return len(text)
    for mark in _ENDS:
        at = text.rfind(mark, start + PART_CHARS // 2, end)
        if at >= 0:
            return at + len(mark)
    return end
