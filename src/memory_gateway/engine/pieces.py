"""A message as it was sent to the pieces of text that are indexed and shown."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator

import msgspec

from memory_gateway.engine.analysis import index_terms
from memory_gateway.engine.cues import cues
from memory_gateway.engine.schemas import ContentItem, DocumentNote, Message, ToolCall
from memory_gateway.kit.text import collapse, fold

PIECE_CHARS = 400
_LONGEST_SPEAKER = 128
_LONGEST_NAME = 255
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；…])|\n+")
_SECONDS_BELOW = 1_000_000_000_000


class Piece(msgspec.Struct, frozen=True):
    """One indexed unit: a short message, or a part of a long one. ``label`` names the file it came from.

    ``frequencies``: how often each of its search terms stands in it, empty for a message that says nothing.
    ``text_hash``: see `text_hash`. ``cues``: see `cues`.
    """

    text: str
    label: str | None
    frequencies: dict[str, int]
    text_hash: int
    cues: int


def shown(label: str | None, text: str) -> str:
    """The label, where there is one, and the text."""
    if label is None:
        return text
    return f"{label} {text}" if text else label


class ParsedItem(msgspec.Struct, frozen=True):
    """A content item with what was read from it; ``text`` is None for a text item, which reads itself."""

    item: ContentItem
    text: str | None = None
    status: str | None = None
    note: DocumentNote | None = None


class PreparedMessage(msgspec.Struct, frozen=True):
    """A message ready to be stored: who, when, what it says in pieces, and how a repeat of it is known."""

    identity: str
    message: Message
    timestamp_ms: int
    content: str
    pieces: tuple[Piece, ...]
    notes: tuple[DocumentNote, ...] = ()

    @property
    def speaker(self) -> str:
        """A participant is known by name, else by id."""
        return speaker_of(self.message)


def speaker_of(message: Message) -> str:
    """By name, else by id. Every piece repeats it, so it is cut to what a name may need."""
    return (message.sender_name or message.sender_id)[:_LONGEST_SPEAKER]


def normal_timestamp(timestamp: int) -> int:
    """Epoch milliseconds; values below 1e12 are seconds, as on EverOS."""
    return timestamp * 1000 if timestamp < _SECONDS_BELOW else timestamp


def item_label(item: ContentItem) -> str:
    """``[TYPE: name]``, kept whether or not the item could be read, so that names match."""
    return f"[{item.type.upper()}: {item.name[:_LONGEST_NAME]}]" if item.name else f"[{item.type.upper()}]"


def prepare(message: Message, items: list[ParsedItem] | None, repeat: int) -> PreparedMessage:
    """``items`` is None for a plain text message. ``repeat`` counts equal messages before it in one request."""
    return PreparedMessage(
        identity=_identity(message, items, repeat),
        message=message,
        timestamp_ms=normal_timestamp(message.timestamp),
        content=_stored_content(message, items),
        pieces=tuple(_indexed(message, label, text) for label, text in _parts(message, items) or [(None, "")]),
        notes=tuple(parsed.note for parsed in items or () if parsed.note is not None),
    )


def _indexed(message: Message, label: str | None, text: str) -> Piece:
    said = shown(label, text)
    if not said:
        return Piece(text, label, {}, text_hash(said), 0)
    frequencies = Counter(index_terms(f"{speaker_of(message)}: {said}"))
    return Piece(text, label, frequencies, text_hash(said), cues(text))


def digest_of(message: Message) -> str:
    """What makes two messages of a session the same message, as they were sent."""
    return hashlib.blake2b(msgspec.json.encode(message), digest_size=16).hexdigest()


def _identity(message: Message, items: list[ParsedItem] | None, repeat: int) -> str:
    """A file that could be read at the second try makes it another message: the first one stands without its text."""
    outcomes = ",".join(item.status or "" for item in items or ())
    return f"{digest_of(message)}.{repeat}.{hashlib.blake2b(outcomes.encode(), digest_size=4).hexdigest()}"


def _stored_content(message: Message, items: list[ParsedItem] | None) -> str:
    """The content as EverOS echoes it, without the payloads: the bytes lie in files."""
    if items is None:
        return msgspec.json.encode(message.content).decode()
    if len(items) == 1 and items[0].item.type == "text" and items[0].text is None:
        return msgspec.json.encode(items[0].item.text or "").decode()
    return msgspec.json.encode([_echoed(parsed) for parsed in items]).decode()


def _echoed(parsed: ParsedItem) -> dict[str, object]:
    item = parsed.item
    echo: dict[str, object] = {
        "type": item.type,
        "text": item.text,
        "uri": item.uri,
        "base64": None,
        "ext": item.ext,
        "name": item.name,
        "extras": item.extras,
    }
    if parsed.status is not None:
        echo |= {"parsed_content": parsed.text or "", "parse_status": parsed.status}
    return echo


def _parts(message: Message, items: list[ParsedItem] | None) -> list[tuple[str | None, str]]:
    found: list[tuple[str | None, str]] = []
    for label, text in _labelled_texts(message, items):
        parts = split_text(text)
        found.extend((label, part) for part in (parts if label is None else parts or [""]))
    found.extend((None, part) for call in message.tool_calls or () for part in split_text(_call_line(call)))
    return found


def _labelled_texts(message: Message, items: list[ParsedItem] | None) -> list[tuple[str | None, str]]:
    if items is None:
        return [(None, message.content if isinstance(message.content, str) else "")]
    return [
        (None, parsed.item.text or "")
        if parsed.item.type == "text"
        else (item_label(parsed.item), parsed.text or parsed.item.text or "")
        for parsed in items
    ]


def _call_line(call: ToolCall) -> str:
    return f"→ {call.function.name}({call.function.arguments})"


def split_text(text: str) -> list[str]:
    """Parts of about 400 characters, cut at sentence ends where there are any, lines kept.

    Nothing is lost but the white space at the cuts.
    """
    parts: list[str] = []
    start = end = 0
    for after in _sentence_ends(text):
        if after - start > PIECE_CHARS and end > start:
            parts.append(text[start:end].strip())
            start = end
        end = after
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def _sentence_ends(text: str) -> Iterator[int]:
    """Where sentences end, white space included; one longer than a piece ends at spaces, or else at 400 characters."""
    start = 0
    for end in (*(match.end() for match in _SENTENCE_END.finditer(text)), len(text)):
        while end - start > PIECE_CHARS:
            space = text.rfind(" ", start + PIECE_CHARS // 2, start + PIECE_CHARS)
            start = start + PIECE_CHARS if space < 0 else space + 1
            yield start
        yield end
        start = end


def split_sentences(text: str) -> list[str]:
    """Sentences in order, trimmed, none empty. Understands Latin and Han full stops and line ends."""
    return list(filter(None, map(str.strip, _SENTENCE_END.split(text))))


def text_hash(text: str) -> int:
    """64 bits of the folded, collapsed text."""
    return int.from_bytes(hashlib.blake2b(collapse(fold(text)).encode(), digest_size=8).digest(), "little")
