"""A file on its way in: counted as it comes, hashed and written on a thread, whole on the disk or not there."""

import hashlib
import logging
from pathlib import Path

from memory_gateway.documents.sniff import HEAD_BYTES
from memory_gateway.kit.errors import PayloadTooLarge, StorageUnavailable
from memory_gateway.kit.files import PART_NAME, NewFile, make_folder, off_loop, sync_folder

_WRITE_BYTES = 1 << 20
_logger = logging.getLogger(__name__)


class IncomingFile:
    """`write` the bytes as they come, then `finish`; `close` removes what is not finished.

    ``head`` holds its beginning. ``size`` counts what came; ``sha256`` is of all bytes once it is finished.
    ``kept``: a row names the file now, so there is nothing to clean up.
    """

    def __init__(self, user_id: str, resource_id: str, name: str, path: Path, max_bytes: int) -> None:
        self.user_id = user_id
        self.resource_id = resource_id
        self.name = name
        self.path = path
        self.size = 0
        self.head = b""
        self.kept = False
        self._max_bytes = max_bytes
        self._hash = hashlib.sha256()
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._file: NewFile | None = None

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    async def write(self, chunk: bytes) -> None:
        """Take the next bytes. `PayloadTooLarge` as soon as there are too many."""
        self.size += len(chunk)
        if self.size > self._max_bytes:
            raise PayloadTooLarge(f"a file may have at most {self._max_bytes} bytes")
        if len(self.head) < HEAD_BYTES:
            self.head += chunk[: HEAD_BYTES - len(self.head)]
        self._waiting.append(chunk)
        self._waiting_bytes += len(chunk)
        if self._waiting_bytes >= _WRITE_BYTES:
            await self._hand_over()

    async def finish(self) -> None:
        """The file is on the disk under its own name when this returns."""
        await self._hand_over(last=True)

    async def stand_in_for(self, path: Path) -> None:
        """Once finished: have the same bytes lie at ``path`` too, if no whole file does."""
        try:
            await off_loop(self._stand_in_for, path)
        except OSError as error:
            raise StorageUnavailable("the disk cannot take the file now; nothing of it was stored") from error

    async def close(self) -> None:
        """Let go of the file; one that is not finished is removed, if need be with its folder later."""
        self._waiting = []
        try:
            if self._file is not None:
                await off_loop(self._file.abandon)
        except OSError:
            _logger.warning("%s could not be closed in order", self.path.parent, exc_info=True)

    async def _hand_over(self, *, last: bool = False) -> None:
        chunks, self._waiting, self._waiting_bytes = self._waiting, [], 0
        try:
            await off_loop(self._store, chunks, last=last)
        except OSError as error:
            raise StorageUnavailable("the disk cannot take the file now; nothing of it was stored") from error

    def _stand_in_for(self, path: Path) -> None:
        if path.is_file() and path.stat().st_size == self.size:
            return
        make_folder(path.parent)
        link = path.parent / f"{PART_NAME}.{self.resource_id}"
        link.hardlink_to(self.path)
        link.replace(path)
        sync_folder(path.parent)

    def _store(self, chunks: list[bytes], *, last: bool) -> None:
        if self._file is None:
            self._file = NewFile(self.path)
        for chunk in chunks:
            self._hash.update(chunk)
            self._file.write(chunk)
        if last:
            self._file.finish()
