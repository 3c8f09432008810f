"""What the upstream is told of a resource: one message from its user that holds the file, or a text in parts."""

import base64
import mimetypes
from pathlib import Path, PurePosixPath

from msgspec import structs

from memory_gateway.documents.extract import LIMIT_CHARS
from memory_gateway.engine.schemas import (
    AddReply,
    AddRequest,
    Caller,
    ContentItem,
    DocumentNote,
    FlushRequest,
    Message,
)
from memory_gateway.gateway.resources.parts import PARTS_AT_ONCE, Parts, goes_at_once, goes_in_parts, read_parts
from memory_gateway.gateway.resources.schemas import Resource, StoredResource
from memory_gateway.kit.clock import epoch_ms
from memory_gateway.kit.files import off_loop
from memory_gateway.kit.text import one_line
from memory_gateway.upstream.port import Upstream

_BASE64_PIECE = 3 << 20  # a multiple of three, so that the pieces' codes can be joined


class Sender:
    """Adds and flushes the session of a resource."""

    def __init__(self, upstream: Upstream, storage_root: Path) -> None:
        self._upstream = upstream
        self._root = storage_root

    def sends_at_once(self, resource: Resource) -> bool:
        """Whether it goes in one request, for whose answer a client can wait."""
        return not self._splits(resource) or goes_at_once(resource)

    async def add(self, stored: StoredResource) -> AddReply:
        """Repeated after a fault it sends the same messages again."""
        path = stored.path(self._root)
        parts = await off_loop(read_parts, path) if self._splits(stored.resource) else None
        if parts is None:
            return await self._add(stored, (_message(stored, [await self._item(stored, path)]),))
        messages = tuple(_message(stored, _labelled(stored, text), number) for number, text in enumerate(parts.texts))
        for start in range(0, len(messages), PARTS_AT_ONCE):
            reply = await self._add(stored, messages[start : start + PARTS_AT_ONCE])
        return structs.replace(reply, message_count=len(messages), notes=_notes(stored, parts))

    async def flush(self, stored: StoredResource) -> None:
        """Close the session: nothing more comes."""
        resource = stored.resource
        request = FlushRequest(resource.session_id, resource.app_id, resource.project_id)
        await self._upstream.flush(request, self._caller(stored))

    def _splits(self, resource: Resource) -> bool:
        return not self._upstream.traits.splits_messages and goes_in_parts(resource)

    async def _add(self, stored: StoredResource, messages: tuple[Message, ...]) -> AddReply:
        resource = stored.resource
        request = AddRequest(resource.session_id, messages, resource.app_id, resource.project_id)
        return await self._upstream.add(request, self._caller(stored))

    def _caller(self, stored: StoredResource) -> Caller:
        return Caller(user_id=stored.user_id, own_files={stored.internal_uri: stored.path(self._root)})

    async def _item(self, stored: StoredResource, path: Path) -> ContentItem:
        resource = stored.resource
        if self._upstream.traits.shares_files:
            return ContentItem(resource.content_type, uri=stored.internal_uri, name=resource.name)
        code = await off_loop(_base64_of, path)
        return ContentItem(resource.content_type, base64=code, ext=_extension(resource), name=resource.name)


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


def _notes(stored: StoredResource, parts: Parts) -> tuple[DocumentNote, ...]:
    if not parts.truncated:
        return ()
    message = f"only the first {LIMIT_CHARS} characters were indexed"
    return (DocumentNote(stored.resource.name, readable=True, message=message),)


def _extension(resource: Resource) -> str:
    suffix = PurePosixPath(resource.name).suffix or mimetypes.guess_extension(resource.mime_type) or ".txt"
    return suffix.removeprefix(".").lower()


def _base64_of(path: Path) -> str:
    codes = []
    with path.open("rb") as file:
        while piece := file.read(_BASE64_PIECE):
            codes.append(base64.b64encode(piece).decode("ascii"))
    return "".join(codes)
