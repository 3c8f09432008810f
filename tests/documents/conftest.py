"""One extractor, so one warm child, for all tests of a module; they share an event loop for that."""

import importlib.util
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from memory_gateway.documents import HEAD_BYTES, Extraction, Extractor, sniff

PICTURE = Path(__file__).parent / "fixtures" / "chinese-and-english.png"
"""Two lines: 会议改到周四下午三点, Invoice 2024-118."""

needs_ocr = pytest.mark.skipif(
    any(importlib.util.find_spec(package) is None for package in ("rapidocr", "onnxruntime")),
    reason="the ocr extra is not installed",
)

Read = Callable[..., Awaitable[Extraction]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def extractor() -> AsyncIterator[Extractor]:
    async with Extractor() as extractor:
        yield extractor


@pytest.fixture
def read(extractor: Extractor, tmp_path: Path) -> Read:
    """Sniff and extract, as the engine does."""

    async def read(content: bytes, name: str, *, limit_chars: int = 2_000_000, timeout: float = 60.0) -> Extraction:
        kind = sniff(content[:HEAD_BYTES], name)
        path = tmp_path / "upload"
        path.write_bytes(content)
        return await extractor.extract(
            path, name=name, mime_type=kind.mime_type, limit_chars=limit_chars, timeout=timeout
        )

    return read
