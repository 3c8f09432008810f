"""Files in a bucket of any server that speaks S3, for gateways on several machines.

What comes in is first written to an unnamed file of the temporary folder, so that a slow client costs no memory and
holds nothing open in the bucket; then it is sent, few files at a time. Once begun, sending is not cancelled: whoever
cleans up must not race with it.
"""

import asyncio
import logging
import os
import re
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

from memory_gateway.blobs.port import BlobKind
from memory_gateway.kit.errors import StorageUnavailable
from memory_gateway.kit.files import off_loop, to_its_end

if TYPE_CHECKING:
    from obstore import GetResult

PART_BYTES = 5 << 20
"""The least that S3 takes as a part of an upload. A smaller file is sent whole."""
PROBE = "~probe"
"""What is written to see whether that can be done. No user is called so."""
_SENT_AT_ONCE = 4
_PATIENCE_SECONDS = 15.0
_PIECE_BYTES = 1 << 20
_READ_BYTES = 1 << 18
_LOOK_AGAIN_SECONDS = 5.0
_COPY_NAME = "blob-"
_LEFT_BEHIND_SECONDS = 3600.0
_REFUSED = re.compile(r"status code: 40[13]\b")
_logger = logging.getLogger(__name__)


class S3Blobs:
    """A key is an object's key below the prefix that the store was opened with."""

    def __init__(self, store: S3Store, root_uri: str, temporary_root: Path) -> None:
        self._store = store
        self._root_uri = root_uri
        self._temporary_root = temporary_root
        self._sending = asyncio.Semaphore(_SENT_AT_ONCE)
        self._looking = asyncio.Lock()
        self._looked_at = -_LOOK_AGAIN_SECONDS
        self._fault: str | None = None
        self._last_failed = False
        _remove_left_behind(temporary_root)

    @property
    def kind(self) -> BlobKind:
        return "s3"

    @property
    def late(self) -> bool:
        return True

    def uri(self, key: str) -> str:
        return f"{self._root_uri}/{key}"

    def new(self, key: str) -> "S3Blob":
        return S3Blob(self, key)

    async def put(self, files: Mapping[str, Iterable[bytes]]) -> None:
        """All of them have come to their end when this returns or raises."""
        puts = (self._put(key, pieces) for key, pieces in files.items())
        for outcome in await asyncio.gather(*puts, return_exceptions=True):
            if outcome is not None:
                raise outcome

    async def _put(self, key: str, pieces: Iterable[bytes]) -> None:
        blob = self.new(key)
        try:
            await blob.write(pieces)
            await blob.finish()
        finally:
            await blob.abandon()

    async def size(self, key: str) -> int | None:
        with _giving():
            try:
                return (await self._store.head_async(key))["size"]
            except FileNotFoundError:
                return None

    async def read(self, key: str, first: int, size: int) -> AsyncIterator[bytes]:
        with _giving():
            found = await self._store.get_async(key, options={"range": (first, first + size)})
        return _pieces(found, _READ_BYTES)

    @asynccontextmanager
    async def local_path(self, key: str) -> AsyncIterator[Path]:
        with _giving():
            found = await self._store.get_async(key)
        with _faults("the disk cannot take the file now"):
            descriptor, name = await off_loop(_new_copy, self._temporary_root)
        path = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                async for piece in _pieces(found, _PIECE_BYTES):
                    with _faults("the disk cannot take the file now"):
                        await off_loop(file.write, piece)
            yield path
        finally:
            await off_loop(path.unlink, missing_ok=True)

    async def copy(self, source: str, target: str) -> None:
        with self._taking():
            await to_its_end(self._store.copy_async(source, target))

    async def keys(self, prefix: str) -> AsyncIterator[str]:
        objects = self._store.list(prefix)
        while True:
            with _faults("the file store cannot be looked through now"):
                try:
                    some = await anext(objects)
                except StopAsyncIteration:
                    return
            for one in some:
                yield one["path"]

    async def remove(self, prefix: str) -> None:
        found = [key async for key in self.keys(prefix)]
        with _faults("the files cannot be removed now"):
            await to_its_end(self._store.delete_async(found))

    async def fault(self) -> str | None:
        """Looked for every few seconds at most, by one who asks; after an upload that failed, by writing."""
        async with self._looking:
            if time.monotonic() - self._looked_at >= _LOOK_AGAIN_SECONDS:
                self._fault = await self._look()
                self._looked_at = time.monotonic()
        return self._fault

    async def check(self) -> None:
        """List and write once. Raises what the client library does."""
        await self._list_once()
        await self._store.put_async(PROBE, b"")

    async def send(self, key: str, file: BinaryIO) -> None:
        """Store all of the file under the key. Not cancelled once begun."""
        with self._taking():
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._sending.acquire()
            try:
                await to_its_end(self._send(key, file))
            finally:
                self._sending.release()

    def temporary_file(self) -> BinaryIO:
        """Without a name: a crash leaves nothing behind."""
        return tempfile.TemporaryFile(dir=self._temporary_root)

    async def _send(self, key: str, file: BinaryIO) -> None:
        size = await off_loop(_rewound, file)
        if size <= PART_BYTES:
            await self._store.put_async(key, await off_loop(file.read))
        else:
            await self._store.put_async(key, _read_on(file), chunk_size=PART_BYTES, max_concurrency=1)

    async def _list_once(self) -> None:
        async for _ in self._store.list(PROBE):
            pass

    async def _look(self) -> str | None:
        try:
            if self._last_failed:
                await self._store.put_async(PROBE, b"")
            else:
                await self._list_once()
        except (BaseError, OSError) as error:
            return "the bucket refuses the gateway" if refuses(error) else "the bucket does not serve now"
        self._last_failed = False
        return None

    @contextmanager
    def _taking(self) -> Iterator[None]:
        try:
            with _faults("the file store cannot take the file now; nothing of it was stored"):
                yield
        except StorageUnavailable:
            self._last_failed = True
            self._looked_at = -_LOOK_AGAIN_SECONDS
            raise
        self._last_failed = False


class S3Blob:
    """Collected on this machine's disk, then sent."""

    def __init__(self, blobs: S3Blobs, key: str) -> None:
        self._blobs = blobs
        self._key = key
        self._file: BinaryIO | None = None

    async def write(self, pieces: Iterable[bytes]) -> None:
        with _faults("the disk cannot take the file now; nothing of it was stored"):
            await off_loop(self._write, pieces)

    async def finish(self, last: Iterable[bytes] = ()) -> None:
        await self.write(last)
        await self._blobs.send(self._key, self._begun())
        await self.abandon()

    async def abandon(self) -> None:
        if self._file is not None:
            await off_loop(self._file.close)

    def _write(self, pieces: Iterable[bytes]) -> None:
        file = self._begun()
        for piece in pieces:
            file.write(piece)

    def _begun(self) -> BinaryIO:
        if self._file is None:
            self._file = self._blobs.temporary_file()
        return self._file


def _new_copy(folder: Path) -> tuple[int, str]:
    _remove_left_behind(folder)
    return tempfile.mkstemp(prefix=_COPY_NAME, dir=folder)


def _remove_left_behind(folder: Path) -> None:
    """Copies of a process that was killed. A file that somebody still reads is younger than that."""
    for path in folder.glob(f"{_COPY_NAME}*"):
        with suppress(FileNotFoundError):  # another process was quicker
            if time.time() - path.stat().st_mtime > _LEFT_BEHIND_SECONDS:
                path.unlink()


def _rewound(file: BinaryIO) -> int:
    """How much was written."""
    size = file.tell()
    file.seek(0)
    return size


async def _read_on(file: BinaryIO) -> AsyncIterator[bytes]:
    while piece := await off_loop(file.read, _PIECE_BYTES):
        yield piece


async def _pieces(found: "GetResult", size: int) -> AsyncIterator[bytes]:
    pieces = found.stream(min_chunk_size=size)
    while True:
        with _giving():
            try:
                piece = await anext(pieces)
            except StopAsyncIteration:
                return
        yield piece


def _giving() -> AbstractContextManager[None]:
    return _faults("the file store cannot give the file now", missing=FileNotFoundError)


@contextmanager
def _faults(message: str, missing: type[Exception] | tuple[()] = ()) -> Iterator[None]:
    """What failed stands in the log; callers learn that it did."""
    try:
        yield
    except missing:
        raise
    except (BaseError, OSError) as error:
        _logger.warning("%s: %s", message, first_line(error))
        raise StorageUnavailable(message) from error


def refuses(error: Exception) -> bool:
    """Whether it is the key that may not do this."""
    if isinstance(error, PermissionDeniedError | UnauthenticatedError):
        return True
    return _REFUSED.search(first_line(error)) is not None  # a list that is refused has no class of its own


def first_line(error: Exception) -> str:
    """A client library's message goes on with its insides."""
    return str(error).partition("\n")[0]
