"""Files in a folder of this machine: whole or not there, and on the disk before anybody is told."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path

from memory_gateway.blobs.port import BlobKind
from memory_gateway.kit.errors import StorageUnavailable
from memory_gateway.kit.files import PART_NAME, NewFile, file_uri, make_folder, off_loop, remove_folder, sync_folder

_READ_BYTES = 1 << 18


class FolderBlobs:
    """A key is a path below the root."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    @property
    def kind(self) -> BlobKind:
        return "folder"

    @property
    def late(self) -> bool:
        return False

    def uri(self, key: str) -> str:
        return file_uri(self._root / key)

    def new(self, key: str) -> "FolderBlob":
        return FolderBlob(self._root / key)

    async def put(self, files: Mapping[str, Iterable[bytes]]) -> None:
        with _taking():
            await off_loop(self._put, files)

    async def size(self, key: str) -> int | None:
        with _giving():
            return await off_loop(_size, self._root / key)

    async def read(self, key: str, first: int, size: int) -> AsyncIterator[bytes]:
        path = await self._found(key)
        return _pieces(path, first, size)

    @asynccontextmanager
    async def local_path(self, key: str) -> AsyncIterator[Path]:
        yield await self._found(key)

    async def copy(self, source: str, target: str) -> None:
        with _taking():
            await off_loop(_link, self._root / source, self._root / target)

    async def keys(self, prefix: str) -> AsyncIterator[str]:
        with _giving():
            found = await off_loop(lambda: sorted(_whole_files(self._root / prefix)))
        for path in found:
            yield path.relative_to(self._root).as_posix()

    async def remove(self, prefix: str) -> None:
        with _faults("the files cannot be removed now"):
            await off_loop(remove_folder, self._root / prefix)

    async def fault(self) -> str | None:
        """None: how the disk is, is asked of the data folder as a whole."""
        return None

    def _put(self, files: Mapping[str, Iterable[bytes]]) -> None:
        for key, pieces in files.items():
            with NewFile(self._root / key) as file:
                for piece in pieces:
                    file.write(piece)
                file.finish()

    async def _found(self, key: str) -> Path:
        if await self.size(key) is None:
            raise FileNotFoundError(key)
        return self._root / key


class FolderBlob:
    """Under a temporary name until it is finished. Its folder is made when the first bytes come."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: NewFile | None = None

    async def write(self, pieces: Iterable[bytes]) -> None:
        with _taking():
            await off_loop(self._write, pieces)

    async def finish(self, last: Iterable[bytes] = ()) -> None:
        with _taking():
            await off_loop(self._finish, last)

    async def abandon(self) -> None:
        if self._file is not None:
            with _faults("the file cannot be removed now"):
                await off_loop(self._file.abandon)

    def _write(self, pieces: Iterable[bytes]) -> None:
        file = self._begun()
        for piece in pieces:
            file.write(piece)

    def _finish(self, last: Iterable[bytes]) -> None:
        self._write(last)
        self._begun().finish()

    def _begun(self) -> NewFile:
        if self._file is None:
            self._file = NewFile(self._path)
        return self._file


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None


def _link(source: Path, target: Path) -> None:
    make_folder(target.parent)
    link = target.parent / f"{PART_NAME}.{source.parent.name}"
    link.hardlink_to(source)
    link.replace(target)
    sync_folder(target.parent)


def _whole_files(folder: Path) -> Iterator[Path]:
    """Links are neither followed nor listed."""
    for parent, _, names in os.walk(folder, followlinks=False):
        for name in names:
            path = Path(parent, name)
            if name != PART_NAME and not path.is_symlink() and path.is_file():
                yield path


async def _pieces(path: Path, first: int, size: int) -> AsyncIterator[bytes]:
    """A quarter of a mebibyte at a time, read on a thread."""
    file = await asyncio.to_thread(path.open, "rb", buffering=0)
    try:
        await asyncio.to_thread(file.seek, first)
        left = size
        while left and (piece := await asyncio.to_thread(file.read, min(left, _READ_BYTES))):
            left -= len(piece)
            yield piece
    finally:
        file.close()


@contextmanager
def _faults(message: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageUnavailable(message) from error


def _taking() -> AbstractContextManager[None]:
    return _faults("the disk cannot take the file now; nothing of it was stored")


def _giving() -> AbstractContextManager[None]:
    return _faults("the disk cannot give the file now")
