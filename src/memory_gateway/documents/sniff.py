"""What kind of file this is: from its first bytes, then from its name."""

import mimetypes
import re
from typing import Literal

import filetype
from msgspec import Struct

ContentType = Literal["image", "audio", "doc", "pdf", "html", "email"]

HEAD_BYTES = 8192
"""How much of a file `sniff` wants to see."""

UNKNOWN = "application/octet-stream"

_OFFICE = "application/vnd.openxmlformats-officedocument."
_OPEN_DOCUMENT = "application/vnd.oasis.opendocument."
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OLE_TYPES = {
    "application/msword",
    "application/vnd.ms-excel",
    "application/vnd.ms-outlook",
    "application/vnd.ms-powerpoint",
}
_EMAIL_TYPES = {"message/rfc822", "application/vnd.ms-outlook"}
_TEXT_TYPES = {
    "application/ecmascript",
    "application/javascript",
    "application/json",
    "application/sql",
    "application/toml",
    "application/x-ndjson",
    "application/x-python",
    "application/x-sh",
    "application/yaml",
}
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")
# The group of comments is atomic: without that, many comments would be tried in every grouping.
_HTML = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?>(?:<!--.*?-->\s*)*)<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
_XML = re.compile(rb"\s*<\?xml\b", re.IGNORECASE)
_SVG = re.compile(rb"<svg\b", re.IGNORECASE)
_HEADER = re.compile(rb"([A-Za-z][A-Za-z0-9-]*):(?:[ \t]|$)|[ \t]+\S")
_MAIL_HEADERS = {b"date", b"message-id", b"mime-version", b"received", b"subject", b"to"}

# What Python's own table of names lacks.
_MORE_NAMES = {
    "application/epub+zip": ".epub",
    "application/rtf": ".rtf",
    "application/toml": ".toml",
    "application/vnd.ms-outlook": ".msg",
    "application/x-ndjson": ".jsonl .ndjson",
    "application/yaml": ".yaml .yml",
    "audio/flac": ".flac",
    "audio/mp4": ".m4a",
    "audio/ogg": ".ogg .oga .opus",
    "image/heic": ".heic",
    "image/webp": ".webp",
    "message/rfc822": ".eml",
    "text/markdown": ".md .markdown",
    "text/plain": ".log .ini .cfg .conf .rst .tex",
    f"{_OFFICE}presentationml.presentation": ".pptx",
    f"{_OFFICE}spreadsheetml.sheet": ".xlsx",
    f"{_OFFICE}wordprocessingml.document": ".docx",
    f"{_OPEN_DOCUMENT}presentation": ".odp",
    f"{_OPEN_DOCUMENT}spreadsheet": ".ods",
    f"{_OPEN_DOCUMENT}text": ".odt",
}


def _name_table() -> mimetypes.MimeTypes:
    """Without the machine's own tables: they differ from one machine to the next."""
    table = mimetypes.MimeTypes(filenames=())
    for kind, extensions in _MORE_NAMES.items():
        for extension in extensions.split():
            table.add_type(kind, extension)
    return table


_NAMES = _name_table()


class Sniffed(Struct, frozen=True):
    """``content_type`` is the upstream's item type; plain text is a ``doc``."""

    content_type: ContentType
    mime_type: str


def sniff(head: bytes, name: str) -> Sniffed:
    """Never fails: bytes that say nothing under a name that says nothing are a ``doc`` of unknown kind."""
    mime_type = _from_bytes(head[:HEAD_BYTES], _from_name(name))
    return Sniffed(_content_type(mime_type), mime_type)


def is_text(mime_type: str) -> bool:
    """Whether the file's characters are its text: markup and mail are not."""
    if mime_type in ("text/html", "text/xml", "text/rtf"):
        return False
    return mime_type.startswith("text/") or mime_type in _TEXT_TYPES


def _content_type(mime_type: str) -> ContentType:
    if mime_type == "application/pdf":
        return "pdf"
    if mime_type in ("text/html", "application/xhtml+xml"):
        return "html"
    if mime_type in _EMAIL_TYPES:
        return "email"
    if mime_type.startswith("image/"):
        return "image"
    return "audio" if mime_type.startswith("audio/") else "doc"


def _from_name(name: str) -> str:
    kind, encoding = _NAMES.guess_type(f"file:{name}")
    return UNKNOWN if kind is None or encoding else kind


def _from_bytes(head: bytes, named: str) -> str:
    if b"%PDF-" in head[:1024]:
        return "application/pdf"
    if head.startswith(_OLE):
        return named if named in _OLE_TYPES else "application/x-ole-storage"
    known: str | None = filetype.guess_mime(head)
    if known == "application/zip":
        return named if _is_zip(named) else known
    if known is not None:
        return known.replace("audio/x-", "audio/")
    if _looks_like_text(head):
        return _text_type(head, named)
    return named


def _is_zip(mime_type: str) -> bool:
    return mime_type.startswith((_OFFICE, _OPEN_DOCUMENT)) or mime_type == "application/epub+zip"


def _looks_like_text(head: bytes) -> bool:
    return bool(head) and (head.startswith(_BYTE_ORDER_MARKS) or _CONTROL.search(head) is None)


def _text_type(head: bytes, named: str) -> str:
    body = head.removeprefix(_BYTE_ORDER_MARKS[0])
    if _HTML.match(body):
        return "text/html"
    if _is_mail(body):
        return "message/rfc822"
    if _XML.match(body) or named == "image/svg+xml":
        return "image/svg+xml" if _SVG.search(body) else "application/xml"
    if is_text(named) or named in ("text/html", "message/rfc822"):
        return named
    return "text/plain"


def _is_mail(body: bytes) -> bool:
    """A block of header lines with a sender and at least two more of those that every mail has."""
    block = re.split(rb"\r?\n\r?\n", body, maxsplit=1)[0].splitlines()
    matches = [_HEADER.match(line) for line in block[:200]]
    if len(block) == 0 or not all(matches[:20]):
        return False
    names = {match[1].lower() for match in matches if match and match[1]}
    return b"from" in names and len(names & _MAIL_HEADERS) >= 2
