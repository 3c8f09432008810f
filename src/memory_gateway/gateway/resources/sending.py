"""What the upstream is told of a resource: one message from its user that holds the file, or its long text in parts."""

import base64
import mimetypes
from pathlib import Path, PurePosixPath

from msgspec import Struct, structs

from memory_gateway.documents.extract import LIMIT_CHARS, Extraction, Extractor
from memory_gateway.documents.turns import reading_for
from memory_gateway.engine.schemas import (
    AddReply,
    AddRequest,
    Caller,
    ContentItem,
    DocumentNote,
    FlushRequest,
    Message,
)
from memory_gateway.gateway.resources.parts import PARTS_AT_ONCE, may_be_long, parts_of
from memory_gateway.gateway.resources.schemas import Resource, StoredResource
from memory_gateway.kit.clock import epoch_ms
from memory_gateway.kit.files import off_loop
from memory_gateway.kit.text import one_line
from memory_gateway.upstream.port import Upstream

_BASE64_PIECE = 3 << 20  # a multiple of three, so that the pieces' codes can be joined


class _LongText(Struct, frozen=True):
    """``unread``: one sentence on what is not in the parts, or None."""

    parts: tuple[str, ...]
    unread: str | None


class Sender:
    """Adds and flushes the session of a resource."""

    def __init__(self, upstream: Upstream, extraction_timeout: float) -> None:
        self._upstream = upstream
        self._extractor = Extractor()
        self._timeout = extraction_timeout

    async def close(self) -> None:
        """Let go of the processes that read documents."""
        await self._extractor.close()

    async def add(self, stored: StoredResource, path: Path) -> AddReply:
        """Repeated after a fault it sends the same messages again. ``path``: where its file can be read just now."""
        return await self._send(stored, path, await self._long_text(stored, path))

    async def add_at_once(self, stored: StoredResource, path: Path) -> AddReply | None:
        """As `add`. None, and nothing is sent, where it takes several requests: no client waits for their answers."""
        text = await self._long_text(stored, path)
        if text is not None and len(text.parts) > PARTS_AT_ONCE:
            return None
        return await self._send(stored, path, text)

    async def flush(self, stored: StoredResource, path: Path) -> None:
        """Close the session: nothing more comes."""
        resource = stored.resource
        request = FlushRequest(resource.session_id, resource.app_id, resource.project_id)
        await self._upstream.flush(request, _caller(stored, path))

    async def _long_text(self, stored: StoredResource, path: Path) -> _LongText | None:
        """What takes more than one message. None: the upstream gets the file, and reads it itself, or in vain."""
        resource = stored.resource
        if self._upstream.traits.splits_messages or not may_be_long(resource):
            return None
        with reading_for(stored.user_id):
            extraction = await self._extractor.extract(
                path, name=resource.name, mime_type=resource.mime_type, timeout=self._timeout
            )
        parts = await off_loop(parts_of, extraction.text)
        return _LongText(parts, _unread(extraction)) if len(parts) > 1 else None

    async def _send(self, stored: StoredResource, path: Path, text: _LongText | None) -> AddReply:
        if text is None:
            return await self._add(stored, path, (_message(stored, [await self._item(stored, path)]),))
        messages = tuple(_message(stored, _labelled(stored, part), number) for number, part in enumerate(text.parts))
        for start in range(0, len(messages), PARTS_AT_ONCE):
            reply = await self._add(stored, path, messages[start : start + PARTS_AT_ONCE])
        return structs.replace(reply, message_count=len(messages), notes=_notes(stored, text))

    async def _add(self, stored: StoredResource, path: Path, messages: tuple[Message, ...]) -> AddReply:
        resource = stored.resource
        request = AddRequest(resource.session_id, messages, resource.app_id, resource.project_id)
        return await self._upstream.add(request, _caller(stored, path))

    async def _item(self, stored: StoredResource, path: Path) -> ContentItem:
        resource = stored.resource
        if self._upstream.traits.shares_files:
            return ContentItem(resource.content_type, uri=stored.internal_uri, name=resource.name)
        code = await off_loop(_base64_of, path)
        return ContentItem(resource.content_type, base64=code, ext=_extension(resource), name=resource.name)


def _caller(stored: StoredResource, path: Path) -> Caller:
    return Caller(user_id=stored.user_id, own_files={stored.internal_uri: path})


def _message(stored: StoredResource, content: str | list[ContentItem], number: int = 0) -> Message:
    """Its parts are a millisecond apart, so that they are read in their order."""
    return Message(
        sender_id=stored.user_id,
        role="user",
        timestamp=epoch_ms(stored.resource.created_at) + number,
        content=content,
    )


def _labelled(stored: StoredResource, text: str) -> str:
    """As EverOS hands a file to its language model: the name may reach the memory, and then leads to the file."""
    return f"[{stored.resource.content_type.upper()}: {one_line(stored.resource.name)}]\n{text}"


def _unread(extraction: Extraction) -> str | None:
    return f"only the first {LIMIT_CHARS} characters were indexed" if extraction.truncated else extraction.error


def _notes(stored: StoredResource, text: _LongText) -> tuple[DocumentNote, ...]:
    if text.unread is None:
        return ()
    return (DocumentNote(stored.resource.name, readable=True, message=text.unread),)


def _extension(resource: Resource) -> str:
    suffix = PurePosixPath(resource.name).suffix or mimetypes.guess_extension(resource.mime_type) or ".txt"
    return suffix.removeprefix(".").lower()


def _base64_of(path: Path) -> str:
    codes = []
    with path.open("rb") as file:
        while piece := file.read(_BASE64_PIECE):
            codes.append(base64.b64encode(piece).decode("ascii"))
    return "".join(codes)
