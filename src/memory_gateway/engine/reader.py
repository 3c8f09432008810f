"""The engine's documents, read by the libraries behind `memory_gateway.documents`."""

from pathlib import Path

from memory_gateway.documents.extract import LIMIT_CHARS, Extraction, Extractor
from memory_gateway.documents.sniff import UNKNOWN, sniff
from memory_gateway.engine.parse import ReadText


class LibraryReader:
    """Reads files and payloads in bounded time; ``folder`` takes the payloads while they are read."""

    def __init__(self, extractor: Extractor, folder: Path, timeout: float) -> None:
        self._extractor = extractor
        self._folder = folder
        self._timeout = timeout

    async def read_file(self, path: Path, name: str) -> ReadText:
        """What the file says. A file that vanished is unreadable."""
        return _read_text(await self._extractor.extract(path, name=name, mime_type=UNKNOWN, timeout=self._timeout))

    async def read_bytes(self, content: bytes, name: str) -> ReadText:
        """What the payload says."""
        kind = sniff(content, name)
        extraction = await self._extractor.extract_bytes(
            content, name=name, mime_type=kind.mime_type, folder=self._folder, timeout=self._timeout
        )
        return _read_text(extraction)


def _read_text(extraction: Extraction) -> ReadText:
    error = f"only the first {LIMIT_CHARS} characters were indexed" if extraction.truncated else extraction.error
    return ReadText(extraction.text, readable=extraction.status == "success", error=error)
