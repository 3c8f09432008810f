"""The libraries that read documents. Only the child process imports this module's heavy parts.

Nothing here opens a connection: the document library gets bytes, never an address, with its own OCR and its cache
off; the OCR models lie in their package; onnxruntime is told to send no usage figures.
"""

import asyncio
import importlib.util
import io
import math
import os
import re
import time
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from msgspec import Struct

from memory_gateway.documents.plain import decode
from memory_gateway.documents.sniff import is_text

if TYPE_CHECKING:
    import xberg

NO_TEXT = "no text was found in the document"
UNREADABLE = "the document cannot be read: it is damaged or of a kind that is not supported"

# Markdown's escapes, taken back: a reader of the text is no Markdown renderer
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_MOST_PIXELS = 100_000_000
_MOST_PAGES = 50
_MOST_PIXELS_IN_ALL = 200_000_000  # fifty sheets of A4 at 200 dots an inch
_SHARE_FOR_PAGES = 0.75  # of a document's time: the page that is begun last must still be in time
_MANY_PIXELS = "the picture has too many pixels"
_DETECTION_SIDE = 1280


class Unreadable(Exception):
    """The message is one sentence for the person who sent the document."""


class Parsed(Struct, frozen=True):
    """``unread`` is one sentence on what was left out, or None."""

    text: str
    unread: str | None = None


NOTHING = Parsed("")


def has_ocr() -> bool:
    """Whether the packages of the ``ocr`` extra are installed. Imports nothing."""
    return all(importlib.util.find_spec(package) for package in ("rapidocr", "onnxruntime"))


def parse(path: Path, mime_type: str, limit_chars: int, seconds: float = math.inf) -> Parsed:
    """The document's text, perhaps longer than ``limit_chars``; of pictures, the pages that can be read in time.

    Raises `Unreadable`, or whatever a library raises.
    """
    until = time.monotonic() + _SHARE_FOR_PAGES * seconds
    if is_text(mime_type):
        return Parsed(_plain(path, limit_chars))
    if mime_type.startswith("image/") and mime_type != "image/svg+xml":
        pages = _Pages(until)
        pages.read(path)
        return pages.parsed()
    return _document(path.read_bytes(), mime_type, until)


def _plain(path: Path, limit_chars: int) -> str:
    with path.open("rb") as file:
        content = file.read(4 * limit_chars + 4)
    text = decode(content)
    if text is None:
        raise Unreadable(UNREADABLE)
    return text


def _document(content: bytes, mime_type: str, until: float) -> Parsed:
    text = "\n\n".join(document.content.strip() for document in asyncio.run(_extracted(content, mime_type)))
    parsed = Parsed(_ESCAPED.sub(r"\1", text))
    if not parsed.text.strip() and mime_type == "application/pdf" and has_ocr():
        parsed = _scan(content, until)
    if not parsed.text.strip():
        raise Unreadable(NO_TEXT)
    return parsed


def _scan(content: bytes, until: float) -> Parsed:
    """The text of a PDF whose pages are pictures."""
    (document,) = asyncio.run(_extracted(content, "application/pdf", images=True))
    pages = _Pages(until)
    for picture in document.images or ():
        if not pages.read(io.BytesIO(picture.data)):
            break
    return pages.parsed()


async def _extracted(content: bytes, mime_type: str, *, images: bool = False) -> "list[xberg.ExtractedDocument]":
    import xberg  # noqa: PLC0415 - heavy

    config = xberg.ExtractionConfig(
        use_cache=False,
        disable_ocr=True,
        enable_quality_processing=False,
        output_format="markdown",  # "plain" puts a page's headings before its paragraphs, and style names into them
        escape_markdown=True,
        html_options=xberg.ConversionOptions(extract_metadata=False),
        images=xberg.ImageExtractionConfig(extract_images=images),
    )
    try:
        found = await xberg.extract(xberg.ExtractInput(kind="bytes", bytes=content, mime_type=mime_type), config)
    except RuntimeError as error:
        raise Unreadable(_sentence(str(error).lower())) from error
    return found.results


def _sentence(message: str) -> str:
    if "password" in message or "encrypted" in message:
        return "the document is protected by a password"
    if "limit exceeded" in message:
        return "the document unpacks to more than is allowed"
    return UNREADABLE


class _Pages:
    """The pages of one document, read until there are too many of them, or of their pixels, or the time is up."""

    def __init__(self, until: float) -> None:
        self._until = until
        self._texts: list[str] = []
        self._pixels = 0
        self._is_cut = False

    def read(self, source: Path | BinaryIO) -> bool:
        """Read a picture's pages; False where the rest of the document is to be left out. Raises `Unreadable`."""
        from PIL import Image, ImageSequence  # noqa: PLC0415 - comes with the ocr extra

        Image.MAX_IMAGE_PIXELS = _MOST_PIXELS // 2  # Pillow raises above twice this, before it unpacks anything
        try:
            with Image.open(source) as image:
                pages = ImageSequence.Iterator(image)
                self._is_cut = not all(map(self._add, pages if image.format == "TIFF" else islice(pages, 1)))
        except Image.DecompressionBombError as error:
            if not self._texts:
                raise Unreadable(_MANY_PIXELS) from error
            self._is_cut = True
        except (OSError, SyntaxError, ValueError) as error:
            raise Unreadable(UNREADABLE) from error
        return not self._is_cut

    def parsed(self) -> Parsed:
        pages = "page was" if len(self._texts) == 1 else f"{len(self._texts)} pages were"
        return Parsed("\n\n".join(filter(None, self._texts)), f"only the first {pages} read" if self._is_cut else None)

    def _add(self, page: Any) -> bool:
        """Read the page, unless it goes too far: its size is known before it is unpacked."""
        self._pixels += page.width * page.height
        if len(self._texts) == _MOST_PAGES or self._pixels > _MOST_PIXELS_IN_ALL:
            return False
        if self._texts and time.monotonic() > self._until:
            return False
        self._texts.append(_page(page))
        return True


def _page(image: Any) -> str:
    """Turned upright, on white, in the colour order that the OCR takes."""
    import numpy as np  # noqa: PLC0415 - heavy
    from PIL import Image, ImageOps  # noqa: PLC0415 - comes with the ocr extra

    upright = ImageOps.exif_transpose(image.copy()).convert("RGBA")
    flat = Image.alpha_composite(Image.new("RGBA", upright.size, "white"), upright).convert("RGB")
    found = _ocr()(np.asarray(flat)[..., ::-1])
    return _lines(found.boxes, found.txts) if found.txts else ""


@cache
def _ocr() -> Any:
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    from rapidocr import RapidOCR  # noqa: PLC0415 - heavy

    # Small pictures are not blown up for detection: ten times quicker, and words of a line stay together.
    return RapidOCR(
        params={
            "Global.log_level": "critical",
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
            "Det.limit_type": "max",
            "Det.limit_side_len": _DETECTION_SIDE,
        }
    )


def _lines(boxes: Any, texts: tuple[str, ...]) -> str:
    """Boxes come in reading order; those side by side make one line."""
    lines: list[str] = []
    bottom = float("-inf")
    for box, text in zip(boxes, texts, strict=True):
        middle = float(box[:, 1].mean())
        if middle < bottom:
            lines[-1] += f" {text}"
        else:
            lines.append(text)
            bottom = float(box[:, 1].max())
    return "\n".join(lines)
