"""A file on its way in: counted as it comes, hashed and written on a thread, whole in the store or not there."""

import hashlib
import logging
from collections.abc import Iterator

from memory_gateway.blobs.port import BlobStore
from memory_gateway.documents.sniff import HEAD_BYTES
from memory_gateway.kit.errors import PayloadTooLarge, StorageUnavailable

_WRITE_BYTES = 1 << 20
_logger = logging.getLogger(__name__)


class IncomingFile:
    """`write` the bytes as they come, then `finish`; `close` removes what is not finished.

    ``head`` holds its beginning. ``size`` counts what came; ``sha256`` is of all bytes once it is finished.
    ``kept``: a row names the file now, so there is nothing to clean up. ``late``: it may come to be though it failed.
    """

    def __init__(
        self, blobs: BlobStore, key: str, *, user_id: str, resource_id: str, name: str, max_bytes: int
    ) -> None:
        self.user_id = user_id
        self.resource_id = resource_id
        self.name = name
        self.key = key
        self.size = 0
        self.head = b""
        self.kept = False
        self.late = False
        self._max_bytes = max_bytes
        self._hash = hashlib.sha256()
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._blobs = blobs
        self._file = blobs.new(key)

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
            await self._file.write(self._taken())

    async def finish(self) -> None:
        """The file is in the store under its own key when this returns."""
        self.late = self._blobs.late
        await self._file.finish(self._taken())
        self.late = False

    async def stand_in_for(self, key: str) -> None:
        """Once finished: have the same bytes lie under ``key`` too, if no whole file does."""
        if await self._blobs.size(key) != self.size:
            await self._blobs.copy(self.key, key)

    async def close(self) -> None:
        """Let go of the file; one that is not finished is removed, if need be with its folder later."""
        self._waiting = []
        try:
            await self._file.abandon()
        except StorageUnavailable:
            _logger.warning("%s could not be closed in order", self.key, exc_info=True)

    def _taken(self) -> Iterator[bytes]:
        """What has come so far, hashed as it is read."""
        chunks, self._waiting, self._waiting_bytes = self._waiting, [], 0
        return map(self._hashed, chunks)

    def _hashed(self, chunk: bytes) -> bytes:
        self._hash.update(chunk)
        return chunk
