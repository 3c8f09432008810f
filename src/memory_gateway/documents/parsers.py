"""The libraries that read documents. Only the child process imports this module's heavy parts.

Nothing here opens a connection: the document library gets bytes, never an address, with its own OCR and its cache
off; the OCR models lie in their package; onnxruntime is told to send no usage figures.
"""

import asyncio
import importlib.util
import io
import os
import re
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

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
_DETECTION_SIDE = 1280


class Unreadable(Exception):
    """The message is one sentence for the person who sent the document."""


def has_ocr() -> bool:
    """Whether the packages of the ``ocr`` extra are installed. Imports nothing."""
    return all(importlib.util.find_spec(package) for package in ("rapidocr", "onnxruntime"))


def parse(path: Path, mime_type: str, limit_chars: int) -> str:
    """The document's text, perhaps longer than ``limit_chars``. Raises `Unreadable`, or whatever a library raises."""
    if is_text(mime_type):
        return _plain(path, limit_chars)
    if mime_type.startswith("image/") and mime_type != "image/svg+xml":
        return _picture(path)
    return _document(path.read_bytes(), mime_type)


def _plain(path: Path, limit_chars: int) -> str:
    with path.open("rb") as file:
        content = file.read(4 * limit_chars + 4)
    text = decode(content)
    if text is None:
        raise Unreadable(UNREADABLE)
    return text


def _document(content: bytes, mime_type: str) -> str:
    text = "\n\n".join(document.content.strip() for document in asyncio.run(_parsed(content, mime_type)))
    text = _ESCAPED.sub(r"\1", text)
    if not text.strip() and mime_type == "application/pdf" and has_ocr():
        text = _scan(content)
    if not text.strip():
        raise Unreadable(NO_TEXT)
    return text


def _scan(content: bytes) -> str:
    """The text of a PDF whose pages are pictures."""
    (document,) = asyncio.run(_parsed(content, "application/pdf", images=True))
    pages = islice(document.images or (), _MOST_PAGES)
    return "\n\n".join(filter(None, (_picture(io.BytesIO(page.data)) for page in pages)))


async def _parsed(content: bytes, mime_type: str, *, images: bool = False) -> "list[xberg.ExtractedDocument]":
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


def _picture(source: Path | BinaryIO) -> str:
    from PIL import Image, ImageSequence  # noqa: PLC0415 - comes with the ocr extra

    Image.MAX_IMAGE_PIXELS = _MOST_PIXELS // 2  # Pillow raises above twice this, before it unpacks anything
    try:
        with Image.open(source) as image:
            pages = islice(ImageSequence.Iterator(image), _MOST_PAGES if image.format == "TIFF" else 1)
            return "\n\n".join(filter(None, map(_page, pages)))
    except Image.DecompressionBombError as error:
        raise Unreadable("the picture has too many pixels") from error
    except (OSError, SyntaxError, ValueError) as error:
        raise Unreadable(UNREADABLE) from error


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
