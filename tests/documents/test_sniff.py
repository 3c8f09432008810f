"""Telling kinds of files apart."""

import time

import pytest

from memory_gateway.documents.sniff import Sniffed, is_text, sniff
from tests.fakes import documents

HTML = b"\xef\xbb\xbf\n<!-- saved --><!DOCTYPE html><html><body>hi</body></html>"
MAIL = documents.mail("合同", "see attachment", {"note.txt": ("text/plain", b"inside")})
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(20)

BYTES_SPEAK = [
    (documents.pdf(["x"]), "pdf", "application/pdf"),
    (b"junk before\n%PDF-1.7\n", "pdf", "application/pdf"),
    (PNG, "image", "image/png"),
    (b"\xff\xd8\xff\xe0\0\x10JFIF" + bytes(20), "image", "image/jpeg"),
    (b"GIF89a" + bytes(20), "image", "image/gif"),
    (b"RIFF\x24\0\0\0WEBPVP8 " + bytes(20), "image", "image/webp"),
    (b"BM" + bytes(60), "image", "image/bmp"),
    (b"II*\0" + bytes(60), "image", "image/tiff"),
    (b"RIFF\x24\0\0\0WAVEfmt " + bytes(20), "audio", "audio/wav"),
    (b"ID3\x03" + bytes(40), "audio", "audio/mpeg"),
    (b"fLaC\0\0\0\x22" + bytes(40), "audio", "audio/flac"),
    (b"OggS\0\x02" + bytes(40), "audio", "audio/ogg"),
    (b"\0\0\0\x20ftypM4A " + bytes(20), "audio", "audio/mp4"),
    (documents.docx(["x"]), "doc", documents.DOCX),
    (documents.office("xl/workbook.xml"), "doc", documents.XLSX),
    (documents.office("ppt/presentation.xml"), "doc", documents.PPTX),
    (documents.archive({"a.txt": "x"}), "doc", "application/zip"),
    (rb"{\rtf1\ansi hello}", "doc", "application/rtf"),
    (HTML, "html", "text/html"),
    (b"<?xml version='1.0'?>\n<html xmlns='http://www.w3.org/1999/xhtml'>", "html", "text/html"),
    (MAIL, "email", "message/rfc822"),
    (b"<?xml version='1.0'?><svg xmlns='http://www.w3.org/2000/svg'/>", "image", "image/svg+xml"),
    (b"<?xml version='1.0'?><feed/>", "doc", "application/xml"),
]
NAME_SPEAKS = [
    ("notes.md", b"# Title\n", "doc", "text/markdown"),
    ("table.csv", b"a,b\n1,2\n", "doc", "text/csv"),
    ("data.json", b'{"a": 1}', "doc", "application/json"),
    ("log", "会议".encode(), "doc", "text/plain"),
    ("会议.txt", "会议纪要".encode("gb18030"), "doc", "text/plain"),
    ("wide.txt", "会议".encode("utf-16"), "doc", "text/plain"),
    ("fragment.html", b"<p>no doctype</p>", "html", "text/html"),
    ("short.eml", b"Subject: x\n\nhello", "email", "message/rfc822"),
    ("old.doc", OLE, "doc", "application/msword"),
    ("old.xls", OLE, "doc", "application/vnd.ms-excel"),
    ("letter.msg", OLE, "email", "application/vnd.ms-outlook"),
    ("unnamed", OLE, "doc", "application/x-ole-storage"),
    ("later.docx", documents.archive({"docProps/app.xml": "<x/>"}), "doc", documents.DOCX),
    ("noise.pdf", bytes(range(256)) * 8, "pdf", "application/pdf"),
    ("noise", bytes(range(256)) * 8, "doc", "application/octet-stream"),
    ("", b"", "doc", "application/octet-stream"),
    ("Report.PDF", b"", "pdf", "application/pdf"),
    ("photo.heic", bytes(30), "image", "image/heic"),
]


@pytest.mark.parametrize(("head", "content_type", "mime_type"), BYTES_SPEAK)
@pytest.mark.parametrize("name", ["file", "lies.txt", "lies.exe"])
def test_bytes_that_say_what_they_are_beat_the_name(head: bytes, name: str, content_type: str, mime_type: str) -> None:
    sniffed = sniff(head, name)
    assert (sniffed.content_type, sniffed.mime_type) == (content_type, mime_type)


@pytest.mark.parametrize(("name", "head", "content_type", "mime_type"), NAME_SPEAKS)
def test_the_name_speaks_where_the_bytes_leave_it_open(
    name: str, head: bytes, content_type: str, mime_type: str
) -> None:
    sniffed = sniff(head, name)
    assert (sniffed.content_type, sniffed.mime_type) == (content_type, mime_type)


def test_a_picture_named_pdf_is_a_picture_and_text_named_pdf_is_text() -> None:
    assert sniff(PNG, "scan.pdf") == Sniffed("image", "image/png")
    assert sniff(b"only words", "scan.pdf") == Sniffed("doc", "text/plain")


@pytest.mark.parametrize(
    "text",
    ["From: Mira\nTo: Teo\n\nlunch?", "From: here\nto there", "Subject: a\nDate: b\nTo: c\n\nx", "From the start"],
)
def test_a_chat_that_looks_a_little_like_mail_is_text(text: str) -> None:
    assert sniff(text.encode(), "chat.txt").mime_type == "text/plain"


@pytest.mark.parametrize("head", [b"<!--x-->" * 1000, b"<!--" * 2000, b" " * 8192, b"<?xml " * 1300, b"A: b\n" * 1600])
def test_hostile_bytes_cost_no_time(head: bytes) -> None:
    started = time.monotonic()
    sniff(head, "x")
    assert time.monotonic() - started < 0.5


@pytest.mark.parametrize(
    "mime_type", ["text/plain", "text/csv", "text/x-python", "application/json", "application/yaml"]
)
def test_text_is_taken_as_it_stands(mime_type: str) -> None:
    assert is_text(mime_type)


@pytest.mark.parametrize(
    "mime_type", ["text/html", "message/rfc822", "application/xml", "application/rtf", "image/png"]
)
def test_markup_is_not(mime_type: str) -> None:
    assert not is_text(mime_type)
