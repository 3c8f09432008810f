"""Content items to text. Opens what the gateway itself wrote and what lies under a configured root, nothing else."""

import asyncio
import base64
import binascii
from collections import Counter
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from memory_gateway.engine.pieces import ParsedItem, PreparedMessage, digest_of, prepare
from memory_gateway.engine.schemas import Caller, ContentItem, DocumentNote, Message

# Cutting and analysing this much text takes about a millisecond; more would hold up other requests.
_INLINE_CHARS = 10_000
FAILED = "failed"
SUCCESS = "success"


class ReadText(Struct, frozen=True):
    """What was read from a document; ``error`` says in a sentence why nothing or not all of it."""

    text: str
    readable: bool
    error: str | None = None


class DocumentReader(Protocol):
    """Bytes to text; an unreadable document is an answer, never an exception."""

    async def read_file(self, path: Path, name: str) -> ReadText: ...

    async def read_bytes(self, content: bytes, name: str) -> ReadText: ...


class Parser:
    """Prepares the messages of a request for storing."""

    def __init__(self, reader: DocumentReader, allowed_roots: tuple[Path, ...], data_dir: Path) -> None:
        self._reader = reader
        self._roots = tuple(root.resolve() for root in allowed_roots)
        self._data_dir = data_dir.resolve()

    async def prepare(self, messages: tuple[Message, ...], caller: Caller) -> list[PreparedMessage]:
        """In order. Equal messages of one request are told apart by their count, so both are kept."""
        seen: Counter[str] = Counter()
        prepared: list[PreparedMessage] = []
        for message in messages:
            large = _chars(message) > _INLINE_CHARS
            digest = await asyncio.to_thread(digest_of, message) if large else digest_of(message)
            items = await self._items(message, caller)
            if large or sum(len(item.text or "") for item in items or ()) > _INLINE_CHARS:
                prepared.append(await asyncio.to_thread(prepare, message, items, seen[digest]))
            else:
                prepared.append(prepare(message, items, seen[digest]))
            seen[digest] += 1
        return prepared

    async def _items(self, message: Message, caller: Caller) -> list[ParsedItem] | None:
        if isinstance(message.content, str):
            return None
        return [await self._item(item, caller) for item in message.content]

    async def _item(self, item: ContentItem, caller: Caller) -> ParsedItem:
        if item.type == "text":
            return ParsedItem(item)
        read = await self._read(item, caller)
        if read is None:
            return ParsedItem(item, item.text, FAILED)
        note = None if read.error is None else DocumentNote(item.name or item.type, read.readable, read.error)
        if not read.readable:
            return ParsedItem(item, item.text, FAILED, note)
        caption = f"{item.text}\n" if item.text else ""
        return ParsedItem(item, caption + read.text, SUCCESS, note)

    async def _read(self, item: ContentItem, caller: Caller) -> ReadText | None:
        """None where there is nothing that may be opened."""
        name = item.name or (f"file.{item.ext}" if item.ext else "file")
        if item.uri is not None:
            path = caller.own_files.get(item.uri) or self._allowed_path(item.uri)
            return None if path is None else await self._reader.read_file(path, name)
        if item.base64 is None:
            return None
        try:
            content = await asyncio.to_thread(base64.b64decode, item.base64, validate=True)
        except (binascii.Error, ValueError):
            return None
        return await self._reader.read_bytes(content, name)

    def _allowed_path(self, uri: str) -> Path | None:
        """The file behind a client's ``file://`` URI, where it really lies under a configured root."""
        if not self._roots:
            return None
        try:
            parts = urlsplit(uri)
            if parts.scheme != "file" or parts.netloc not in {"", "localhost"}:
                return None
            real = Path(unquote(parts.path)).resolve(strict=True)
        except (OSError, ValueError, RuntimeError):  # no such file, no URI, links in a circle
            return None
        inside = any(real.is_relative_to(root) for root in self._roots)
        return real if inside and not real.is_relative_to(self._data_dir) and real.is_file() else None


def _chars(message: Message) -> int:
    if isinstance(message.content, str):
        return len(message.content)
    return sum(len(item.text or "") + len(item.base64 or "") for item in message.content)
