"""Files that are whole or not there, names that stay inside their folder, and their URIs.

What touches the disk here blocks: call it through `off_loop`.
"""

import asyncio
import os
import re
import shutil
import unicodedata
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

MAX_NAME_BYTES = 255
PART_NAME = ".part"  # no file of a user is ever called so
_MAX_SUFFIX_BYTES = 32
_SEPARATORS = re.compile(r"[/\\]")
# C0 and C1 controls, line separators, bidirectional controls, surrogates; then what Windows forbids
_UNSAFE = re.compile('[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff<>:"|?*]')
_OUTER = " ."
_RESERVED = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³]) *(\.|$)", re.IGNORECASE)
_ZERO_WIDTH_JOINER = "\u200d"
_SKIN_TONES = range(0x1F3FB, 0x1F400)


def safe_name(name: str, fallback: str = "file") -> str:
    """The last component of ``name``, cleaned so that it is one ordinary file name on any disk.

    No separators, control characters or reserved device names, no outer dots and spaces, NFC, at most 255 bytes of
    UTF-8 with the extension kept. ``fallback`` stands in where nothing is left.
    """
    components = (_clean(part) for part in reversed(_SEPARATORS.split(unicodedata.normalize("NFC", name))))
    shortened = _shortened(next(filter(None, components), fallback))
    return _shortened(f"_{shortened}") if _RESERVED.match(shortened) else shortened


def _clean(component: str) -> str:
    return _stripped(_UNSAFE.sub("_", _stripped(component)))


def _stripped(text: str) -> str:
    """Without outer dots and white space of any script."""
    while text != (text := text.strip().strip(_OUTER)):
        pass
    return text


def _shortened(name: str) -> str:
    if len(name.encode()) <= MAX_NAME_BYTES:
        return name
    stem, dot, suffix = name.rpartition(".")
    ending = f"{dot}{suffix}"
    if not stem or len(ending.encode()) > _MAX_SUFFIX_BYTES:
        stem, ending = name, ""
    return _stripped(_cut(stem, MAX_NAME_BYTES - len(ending.encode()))) + ending


def _cut(text: str, size: int) -> str:
    """At most ``size`` bytes of UTF-8, not ending inside what a reader sees as one character."""
    kept = len(text.encode()[:size].decode(errors="ignore"))
    end = kept
    while end and end < len(text) and _joined(text[end - 1], text[end]):
        end -= 1
    return text[: end or kept]


def _joined(before: str, after: str) -> bool:
    return (
        _ZERO_WIDTH_JOINER in (before, after)
        or unicodedata.category(after).startswith("M")
        or ord(after) in _SKIN_TONES
    )


def file_uri(path: Path) -> str:
    """The percent-encoded ``file://`` URI of an absolute path."""
    return path.as_uri()


async def off_loop(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking work on a thread, to its end even when the caller is cancelled."""
    return await to_its_end(asyncio.to_thread(work, *args, **kwargs))


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Wait for the work to end even when the caller is cancelled.

    So whoever cleans up after a cancelled write never races with it.
    """
    running = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.gather(running, return_exceptions=True)
        raise


def make_folder(folder: Path) -> None:
    """Create the folder and its parents, each of them on the disk when this returns."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Put the folder's list of names on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_folder(folder: Path) -> None:
    """Remove the folder and all in it; that it is gone already is fine. Links are removed, not followed."""
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)


class NewFile:
    """A file under a temporary name until `finish` gives it its own; left without `finish`, it is removed."""

    def __init__(self, path: Path) -> None:
        make_folder(path.parent)
        self._path = path
        self._part = path.parent / PART_NAME
        self._file = self._part.open("wb", buffering=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abandon()

    def write(self, chunk: bytes) -> None:
        rest = memoryview(chunk)
        while rest:
            rest = rest[self._file.write(rest) :]

    def finish(self) -> None:
        """The file is whole and on the disk, under its own name, when this returns."""
        os.fsync(self._file.fileno())
        self._file.close()
        self._part.replace(self._path)
        sync_folder(self._path.parent)

    def abandon(self) -> None:
        """Remove what was written, unless it is finished."""
        if not self._file.closed:
            self._file.close()
            self._part.unlink(missing_ok=True)
