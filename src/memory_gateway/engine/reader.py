"""The engine's documents, read by the libraries behind `memory_gateway.documents`."""

from pathlib import Path

from memory_gateway.documents.extract import Extraction, extract, extract_bytes
from memory_gateway.documents.sniff import sniff
from memory_gateway.engine.parse import ReadText

MOST_CHARS = 2_000_000
_HEAD_BYTES = 4096


class LibraryReader:
    """Reads files and payloads in bounded time; ``folder`` takes the payloads while they are read."""

    def __init__(self, folder: Path, timeout: float) -> None:
        self._folder = folder
        self._timeout = timeout

    async def read_file(self, path: Path, name: str) -> ReadText:
        """What the file says. A file that vanished is unreadable."""
        try:
            with path.open("rb") as file:
                head = file.read(_HEAD_BYTES)
        except OSError:
            return ReadText("", readable=False, error="the file cannot be opened")
        kind = sniff(head, name)
        return _read_text(
            await extract(path, name=name, mime_type=kind.mime_type, limit_chars=MOST_CHARS, timeout=self._timeout)
        )

    async def read_bytes(self, content: bytes, name: str) -> ReadText:
        """What the payload says."""
        kind = sniff(content[:_HEAD_BYTES], name)
        return _read_text(
            await extract_bytes(
                content,
                name=name,
                mime_type=kind.mime_type,
                limit_chars=MOST_CHARS,
                timeout=self._timeout,
                folder=self._folder,
            )
        )


def _read_text(extraction: Extraction) -> ReadText:
    error = extraction.error
    if extraction.truncated:
        error = f"only the first {MOST_CHARS} characters were indexed"
    return ReadText(extraction.text, readable=extraction.status == "success", error=error)
