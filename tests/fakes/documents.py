"""Small documents made by code: what office programs, browsers and scanners would write, and what attackers would."""

import io
import zipfile
from collections.abc import Iterable, Sequence
from email.message import EmailMessage
from xml.sax.saxutils import escape

_OFFICE = "application/vnd.openxmlformats-officedocument"
DOCX = f"{_OFFICE}.wordprocessingml.document"
XLSX = f"{_OFFICE}.spreadsheetml.sheet"
PPTX = f"{_OFFICE}.presentationml.presentation"
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"


def docx(paragraphs: Iterable[str]) -> bytes:
    """A Word document."""
    return _docx([_paragraph(text).encode() for text in paragraphs])


def docx_bomb(mebibytes: int) -> bytes:
    """A Word document of about a kilobyte a mebibyte that unpacks to ``mebibytes``."""
    return _docx([b"<w:p><w:r><w:t>", *([b"A" * (1 << 20)] * mebibytes), b"</w:t></w:r></w:p>"])


def office(main: str) -> bytes:
    """The start of any Office file: enough to tell its kind, nothing to read. ``main`` is such as xl/workbook.xml."""
    return archive({"[Content_Types].xml": "<Types/>", "_rels/.rels": "<R/>", main: "<x/>"})


def archive(members: dict[str, str]) -> bytes:
    """A zip."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return target.getvalue()


_LINES_A_PAGE = 40


def pdf(lines: Sequence[str]) -> bytes:
    """A PDF, forty lines a page. Any script: the font is Adobe's GB1 collection, addressed by UCS-2."""
    starts = range(0, max(1, len(lines)), _LINES_A_PAGE)
    pages = [lines[start : start + _LINES_A_PAGE] for start in starts]
    kids = " ".join(f"{6 + 2 * number} 0 R" for number in range(len(pages)))
    descriptor = (
        "<< /Type /FontDescriptor /FontName /STSong-Light /Flags 6 /FontBBox [-25 -254 1000 880] /ItalicAngle 0 "
        "/Ascent 880 /Descent -120 /CapHeight 880 /StemV 93 >>"
    )
    glyphs = (
        "<< /Type /Font /Subtype /CIDFontType0 /BaseFont /STSong-Light /DW 1000 /FontDescriptor 4 0 R "
        "/CIDSystemInfo << /Registry (Adobe) /Ordering (GB1) /Supplement 4 >> >>"
    )
    return _pdf_of(
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type0 /BaseFont /STSong-Light /Encoding /UniGB-UCS2-H /DescendantFonts [5 0 R] >>",
        descriptor,
        glyphs,
        *(part for number, page in enumerate(pages) for part in _pdf_page(page, 7 + 2 * number)),
    )


def mail(subject: str, text: str, attachments: dict[str, tuple[str, bytes]]) -> bytes:
    """An e-mail; attachments are name to MIME type and content."""
    message = EmailMessage()
    message["From"], message["To"] = "mira@example.org", "teo@example.org"
    message["Subject"], message["Date"] = subject, "Thu, 28 May 2026 10:00:00 +0000"
    message.set_content(text)
    for name, (mime_type, content) in attachments.items():
        kind, subtype = mime_type.split("/", 1)
        message.add_attachment(content, maintype=kind, subtype=subtype, filename=name)
    return bytes(message)


def _paragraph(text: str) -> str:
    return f'<w:p><w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p>'


def _docx(body: Iterable[bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" '
            'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/word/document.xml" ContentType="{DOCX}.main+xml"/></Types>',
        )
        file.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" Type="{_RELATION}" '
            'Target="word/document.xml"/></Relationships>',
        )
        with file.open("word/document.xml", "w", force_zip64=True) as part:
            part.write(f'<?xml version="1.0" encoding="UTF-8"?><w:document xmlns:w="{_WORD}"><w:body>'.encode())
            for piece in body:
                part.write(piece)
            part.write(b"</w:body></w:document>")
    return target.getvalue()


def _pdf_page(lines: Sequence[str], content_object: int) -> tuple[str, str]:
    shown = " ".join(f"<{line.encode('utf-16-be').hex()}> Tj T*" for line in lines)
    content = f"BT /F1 14 Tf 72 720 Td 16 TL {shown} ET"
    page = (
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {content_object} 0 R "
        "/Resources << /Font << /F1 3 0 R >> >> >>"
    )
    return page, f"<< /Length {len(content)} >>\nstream\n{content}\nendstream"


def _pdf_of(*objects: str) -> bytes:
    text, offsets = "%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        offsets.append(len(text))
        text += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    return (
        f"{text}xref\n0 {size}\n0000000000 65535 f \n{table}"
        f"trailer << /Size {size} /Root 1 0 R >>\nstartxref\n{len(text)}\n%%EOF\n"
    ).encode("latin-1")
