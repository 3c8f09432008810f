"""A long text in parts, each a message of its own, for an upstream that never splits a message.

Its language model reads a message whole, so a long one is cut off or refused there.
"""

from memory_gateway.documents.sniff import is_text
from memory_gateway.gateway.resources.schemas import Resource

PART_CHARS = 8_000
PARTS_AT_ONCE = 4
"""In one request, so that it is answered in the time of a request."""
_ENDS = ("\n\n", "\n", "。", ". ", " ")


def may_be_long(resource: Resource) -> bool:
    """Whether its text may be too long for one message. Of pictures and sound only the upstream makes text."""
    if resource.content_type in ("image", "audio"):
        return False
    packed = resource.content_type == "pdf" or (resource.content_type == "doc" and not is_text(resource.mime_type))
    return packed or resource.size > PART_CHARS


def parts_of(text: str) -> tuple[str, ...]:
    """In their order. Nothing but space is lost between them; a text that says nothing has none."""
    parts = []
    start = 0
    while start < len(text):
        end = _end(text, start)
        if part := text[start:end].strip():
            parts.append(part)
        start = end
    return tuple(parts)


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
