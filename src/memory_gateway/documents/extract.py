"""Documents to text. A document that cannot be read is an `Extraction` that says so, never an exception."""

import asyncio
import math
import os
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from msgspec import Struct

from memory_gateway.documents import plain
from memory_gateway.documents.child import Request
from memory_gateway.documents.parsers import UNREADABLE, has_ocr
from memory_gateway.documents.sniff import HEAD_BYTES, UNKNOWN, is_text, sniff
from memory_gateway.documents.turns import whose
from memory_gateway.documents.worker import STOPPED, Children, ChildStopped
from memory_gateway.kit.errors import StorageUnavailable

LIMIT_CHARS = 2_000_000
INLINE_BYTES = 1 << 20


class Extraction(Struct, frozen=True):
    """``error`` is one sentence without paths: why nothing was read, or of a success why not all of it was.

    ``truncated``: there was more text than was asked for. A picture may hold no text.
    """

    text: str
    status: Literal["success", "failed"]
    error: str | None = None
    truncated: bool = False


class Extractor:
    """Reads documents; small plain text on a thread, all else in child processes that are kept warm for a while.

    Give one to everybody who reads documents, and close it at the end.
    """

    def __init__(self, children: Children | None = None) -> None:
        self._children = children or Children()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._children.close()

    async def extract(
        self,
        path: Path,
        *,
        name: str,
        mime_type: str,
        limit_chars: int = LIMIT_CHARS,
        timeout: float,  # noqa: ASYNC109 - a document's own limit, counted from when a child is free
    ) -> Extraction:
        """The text of a file, at most ``limit_chars`` of it. A kind not known yet is told from bytes and name."""
        try:
            size, mime_type = await asyncio.to_thread(_look, path, name, mime_type)
        except OSError:
            return _failed("the document cannot be opened")
        if size == 0:
            return _failed("the document is empty")
        if (reason := _never_read(mime_type)) is not None:
            return _failed(reason)
        if is_text(mime_type) and size <= INLINE_BYTES:
            return await asyncio.to_thread(_inline, path, limit_chars)
        return await self._in_child(Request(str(path), mime_type, limit_chars, timeout))

    async def extract_bytes(
        self,
        content: bytes,
        *,
        name: str,
        mime_type: str,
        folder: Path,
        limit_chars: int = LIMIT_CHARS,
        timeout: float,  # noqa: ASYNC109 - as `extract`
    ) -> Extraction:
        """As `extract`, by way of a private file in ``folder`` that never stays. Raises `StorageUnavailable`."""
        path = await asyncio.to_thread(_write_private, content, folder)
        try:
            return await self.extract(path, name=name, mime_type=mime_type, limit_chars=limit_chars, timeout=timeout)
        finally:
            await asyncio.to_thread(path.unlink, missing_ok=True)

    async def _in_child(self, request: Request) -> Extraction:
        try:
            reply, text = await self._children.ask(request, whose.get())
        except TimeoutError:
            return _failed(f"reading the document took longer than {math.ceil(request.seconds)} s")
        except ChildStopped:
            return _failed(STOPPED)
        if reply.error is not None:
            return _failed(reply.error)
        return Extraction(text, "success", reply.unread, truncated=reply.truncated)


def _look(path: Path, name: str, mime_type: str) -> tuple[int, str]:
    """Size and kind. Raises `OSError`."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        known = mime_type not in ("", UNKNOWN)
        return size, mime_type if known else sniff(file.read(HEAD_BYTES), name).mime_type


def _never_read(mime_type: str) -> str | None:
    if mime_type.startswith(("audio/", "video/")):
        return "sound and film are kept but not turned into text"
    if mime_type.startswith("image/") and not has_ocr():
        return "text in pictures is read only where memory-gateway[ocr] is installed"
    return None


def _inline(path: Path, limit_chars: int) -> Extraction:
    try:
        text = plain.decode(path.read_bytes())
    except OSError:
        return _failed("the document cannot be opened")
    if text is None:
        return _failed(UNREADABLE)
    return Extraction(text[:limit_chars], "success", truncated=len(text) > limit_chars)


def _failed(error: str) -> Extraction:
    return Extraction("", "failed", error)


def _write_private(content: bytes, folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
        except OSError:
            Path(name).unlink()
            raise
    except OSError as error:
        raise StorageUnavailable("the disk cannot take the document now") from error
    return Path(name)
