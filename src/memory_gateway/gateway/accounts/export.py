"""Everything that is held on one user as a zip: JSON lines of each kind of row, and the files."""

import asyncio
import contextlib
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, ParamSpec, TypeVar

import msgspec

from memory_gateway.blobs.port import BlobStore
from memory_gateway.gateway.accounts.participants import HoldsRows
from memory_gateway.gateway.accounts.user_ids import check_user_id
from memory_gateway.gateway.audit.service import Audit
from memory_gateway.kit.errors import StorageUnavailable
from memory_gateway.kit.files import off_loop
from memory_gateway.upstream.port import Upstream

P = ParamSpec("P")
R = TypeVar("R")

Place = tuple[str, str]

_DEFAULT_PLACE: Place = ("default", "default")
_KIND = re.compile(r"[a-z_]+")
_BUFFERED_BYTES = 1 << 18
_encoder = msgspec.json.Encoder()


class UserExport:
    """Writes exports, one at a time, into unnamed temporary files: a crash leaves nothing behind."""

    def __init__(
        self,
        audit: Audit,
        rooms: Sequence[HoldsRows],
        upstream: Upstream,
        blobs: BlobStore,
        temporary_root: Path,
    ) -> None:
        self._audit = audit
        self._rooms = (*rooms, audit)
        self._upstream = upstream
        self._blobs = blobs
        self._temporary_root = temporary_root
        self._one_at_a_time = asyncio.Lock()

    async def write(self, user_id: str) -> BinaryIO:
        """The zip, rewound; whoever reads it closes it. Upstream errors pass through."""
        folder = check_user_id(user_id)
        await self._audit.record(user_id, "export", "user", user_id)
        async with self._one_at_a_time:
            with _Spools(self._temporary_root) as spools:
                async for row in self._rows(user_id):
                    await spools.add(row)
                return await self._packed(spools, folder)

    async def _packed(self, spools: "_Spools", folder: str) -> BinaryIO:
        packed = await _on_disk(_temporary_file, self._temporary_root)
        try:
            with _faults(), zipfile.ZipFile(packed, "w") as archive:
                await _on_disk(spools.pack, archive)
                async for key in self._blobs.keys(folder):
                    with contextlib.suppress(FileNotFoundError):  # deleted since
                        async with self._blobs.local_path(key) as path:
                            await _on_disk(_store_file, archive, f"files/{key.removeprefix(folder)[1:]}", path)
                await _on_disk(archive.close)  # here, for it writes the list of all files
        except BaseException:
            packed.close()
            raise
        await _on_disk(packed.seek, 0)
        return packed

    async def _rows(self, user_id: str) -> AsyncIterator[dict[str, Any]]:
        places = {_DEFAULT_PLACE}
        for room in self._rooms:
            async for row in room.export(user_id):
                if "app_id" in row:
                    places.add((row["app_id"], row["project_id"]))
                yield row
        async for row in self._upstream.export(user_id, sorted(places)):
            yield row


class _Spools:
    """One temporary file of JSON lines a kind; the disk is touched on threads only."""

    def __init__(self, temporary_root: Path) -> None:
        self._root = temporary_root
        self._files: dict[str, BinaryIO] = {}
        self._waiting: dict[str, bytearray] = {}

    def __enter__(self) -> "_Spools":
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            with contextlib.suppress(OSError):  # a full disk: what could not be written is not wanted any more
                file.close()

    async def add(self, row: dict[str, Any]) -> None:
        kind = row["kind"]
        lines = self._waiting.setdefault(kind, bytearray())
        lines += _encoder.encode(row) + b"\n"
        if len(lines) >= _BUFFERED_BYTES:
            await _on_disk(self._flush, kind)

    def _flush(self, kind: str) -> None:
        if kind not in self._files:
            self._files[kind] = _temporary_file(self._root)
        self._files[kind].write(self._waiting.pop(kind, b""))

    def pack(self, archive: zipfile.ZipFile) -> None:
        for kind in list(self._waiting):
            self._flush(kind)
        for kind, lines in sorted(self._files.items()):
            lines.seek(0)
            _store(archive, f"{_checked(kind)}.jsonl", lines, zipfile.ZIP_DEFLATED)


async def _on_disk(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    with _faults():
        return await off_loop(work, *args, **kwargs)


@contextlib.contextmanager
def _faults() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageUnavailable("the export cannot be written now") from error


def _temporary_file(root: Path) -> BinaryIO:
    root.mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryFile(dir=root)


def _checked(kind: str) -> str:
    if not _KIND.fullmatch(kind):
        raise ValueError(f"not a kind of row: {kind!r}")
    return kind


def _store_file(archive: zipfile.ZipFile, name: str, path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:  # deleted since
        return
    with os.fdopen(descriptor, "rb") as file:
        _store(archive, name, file, zipfile.ZIP_STORED)


def _store(archive: zipfile.ZipFile, name: str, source: BinaryIO, compression: int) -> None:
    entry = zipfile.ZipInfo(name)
    entry.compress_type = compression
    with archive.open(entry, "w", force_zip64=True) as target:
        shutil.copyfileobj(source, target, 1 << 18)
