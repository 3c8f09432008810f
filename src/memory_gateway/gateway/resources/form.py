"""Reading an upload: multipart/form-data as a stream, so that the file is never held whole."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

from multipart import MultipartSegment, PushMultipartParser, parse_options_header

from memory_gateway.gateway.names import app_or_project
from memory_gateway.gateway.resources.incoming import IncomingFile
from memory_gateway.gateway.resources.schemas import UploadFields, UploadReply
from memory_gateway.gateway.resources.service import Resources
from memory_gateway.kit.errors import InvalidInput, MalformedRequest, PayloadTooLarge, UnsupportedFormat
from memory_gateway.kit.http_json import refuse_unclean

FIELDS = ("app_id", "project_id", "title", "user_id", "user_key")
FRAME_BYTES = 1 << 20  # what boundaries, part headers and fields may take besides the file
_FIELD_BYTES = 8192
_TITLE_CHARACTERS = 500
_MAX_PARTS = 32

Admit = Callable[[str | None, str | None], Awaitable[str]]


class UploadForm:
    """One upload's body, part by part: its fields are collected here, its file goes to `Resources`.

    ``admit`` authenticates with the credentials that have come so far. It is asked before the file is read, and once
    more at the end, for a ``user_id`` that stands behind the file.
    """

    def __init__(self, resources: Resources, admit: Admit) -> None:
        self._resources = resources
        self._admit = admit
        self._texts: dict[str, bytes] = {}
        self._fault: InvalidInput | None = None
        self._file: IncomingFile | None = None
        self._name = ""

    async def upload(self, body: AsyncIterator[bytes], content_type: str, content_length: int | None) -> UploadReply:
        """Read the body and keep its file; on any fault nothing of it stays."""
        boundary = await self._boundary(content_type)
        limit = self._resources.max_upload_bytes
        if content_length is not None and content_length > limit + FRAME_BYTES:
            raise PayloadTooLarge(f"a file may have at most {limit} bytes")
        async with AsyncExitStack() as stack:
            async for event in _events(body, boundary, limit + FRAME_BYTES):
                if isinstance(event, MultipartSegment):
                    await self._begin(event, stack)
                elif self._name != "file":
                    self._take_text(event)
                elif self._file is not None:
                    await self._file.write(event)
            await self._authenticate()
            fields = self._fields()
            if self._file is None:
                raise InvalidInput("required", field="file")
            return await self._resources.keep(self._file, fields)

    async def _boundary(self, content_type: str) -> str:
        kind, options = parse_options_header(content_type)
        if kind == "multipart/form-data" and options.get("boundary"):
            boundary: str = options["boundary"]
            return boundary
        await self._authenticate()
        if kind == "multipart/form-data":
            raise MalformedRequest("the content type names no boundary")
        raise UnsupportedFormat("the content type of this endpoint is multipart/form-data")

    async def _begin(self, part: MultipartSegment, stack: AsyncExitStack) -> None:
        self._name = part.name or ""
        if self._name != "file":
            self._begin_text()
            return
        user_id = await self._authenticate()
        self._fields()
        if self._file is not None:
            raise InvalidInput("only one file", field="file")
        if not part.filename:
            raise InvalidInput("must be a file with a name", field="file")
        refuse_unclean(part.filename, "file")
        self._file = await stack.enter_async_context(self._resources.receive(user_id, part.filename))

    def _begin_text(self) -> None:
        if self._name not in FIELDS:
            self._blame(InvalidInput("unknown field", field=self._name.replace("\0", "?") or "(no name)"))
        elif self._name in self._texts:
            self._blame(InvalidInput("given twice", field=self._name))
        self._texts[self._name] = b""

    def _take_text(self, chunk: bytes) -> None:
        text = self._texts[self._name] + chunk
        if len(text) > _FIELD_BYTES:
            self._blame(InvalidInput(f"at most {_FIELD_BYTES} bytes", field=self._name))
        self._texts[self._name] = text[:_FIELD_BYTES]

    def _blame(self, fault: InvalidInput) -> None:
        """Remember the first fault: who is calling is looked at before what they sent."""
        self._fault = self._fault or fault

    async def _authenticate(self) -> str:
        user_id, user_key = self._texts.get("user_id"), self._texts.get("user_key")
        return await self._admit(_lenient(user_id), _lenient(user_key))

    def _fields(self) -> UploadFields:
        """What has come so far, checked."""
        if self._fault is not None:
            raise self._fault
        texts = {name: _strict(name, text) for name, text in self._texts.items()}
        title = texts.get("title") or None
        if title and len(title) > _TITLE_CHARACTERS:
            raise InvalidInput(f"at most {_TITLE_CHARACTERS} characters", field="title")
        return UploadFields(
            app_or_project(texts.get("app_id"), "app_id"),
            app_or_project(texts.get("project_id"), "project_id"),
            title,
        )


async def _events(body: AsyncIterator[bytes], boundary: str, max_bytes: int) -> AsyncIterator[MultipartSegment | bytes]:
    """Each part, followed by the pieces of its content. `multipart.MultipartError` for what is no such body."""
    received = 0
    with PushMultipartParser(boundary, max_segment_count=_MAX_PARTS) as parser:
        async for chunk in body:
            received += len(chunk)
            if received > max_bytes:
                raise PayloadTooLarge(f"a body may have at most {max_bytes} bytes")
            if chunk:
                for event in parser.parse(chunk):
                    if event is not None:
                        yield event


def _lenient(text: bytes | None) -> str | None:
    return None if text is None else text.decode(errors="replace")


def _strict(name: str, text: bytes) -> str:
    try:
        decoded = text.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput("must be UTF-8", field=name) from error
    refuse_unclean(decoded, name)
    return decoded
