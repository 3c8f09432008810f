"""Where files lie: a folder, or a bucket that several machines share. Both are this, and keep the same keys.

A key is ``{user_id}/{room}/{id}/{name}``, each part an ordinary file name (`kit.files.safe_name`). A prefix is the
whole of some leading parts: what lies under ``ann`` is never what lies under ``anna``.
"""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Literal, Protocol

BlobKind = Literal["folder", "s3"]


class NewBlob(Protocol):
    """A file on its way in. Nobody sees it under its key before `finish`, and then all of it."""

    async def write(self, pieces: Iterable[bytes]) -> None:
        """Take the next bytes; they are made on a thread."""
        ...

    async def finish(self, last: Iterable[bytes] = ()) -> None:
        """Take the last bytes. The file outlives a crash, whole and under its key, when this returns.

        It goes on to its end even when the caller is cancelled.
        """
        ...

    async def abandon(self) -> None:
        """Let go of what was written, unless it is finished."""
        ...


class BlobStore(Protocol):
    """Every method raises `StorageUnavailable`, in bounded time, where the disk or the bucket cannot serve."""

    @property
    def kind(self) -> BlobKind: ...

    @property
    def late(self) -> bool:
        """Whether a file that could not be stored may still come to be, a moment later."""
        ...

    def uri(self, key: str) -> str:
        """What a file is called outside of the gateway: ``file://…``, percent-encoded, or ``s3://bucket/key`` as is."""
        ...

    def new(self, key: str) -> NewBlob: ...

    async def put(self, files: Mapping[str, Iterable[bytes]]) -> None:
        """`new` files by their keys, written and finished. One that fails is abandoned; others may be there then."""
        ...

    async def size(self, key: str) -> int | None:
        """In bytes; None where there is no such file."""
        ...

    async def read(self, key: str, first: int, size: int) -> AsyncIterator[bytes]:
        """So many bytes from there on. `FileNotFoundError` where there is no such file, before anything is read."""
        ...

    def local_path(self, key: str) -> AbstractAsyncContextManager[Path]:
        """A path for whoever needs one, other processes too, until the block ends: read it and leave it as it is.

        `FileNotFoundError` where there is no such file.
        """
        ...

    async def copy(self, source: str, target: str) -> None:
        """Have the same bytes under another key too, in place of whatever lies there."""
        ...

    def keys(self, prefix: str) -> AsyncIterator[str]:
        """The keys under the prefix."""
        ...

    async def remove(self, prefix: str) -> None:
        """Remove all that lies under the prefix; that there is nothing is fine."""
        ...

    async def fault(self) -> str | None:
        """What keeps it from serving just now, in words for everybody; None when all is well."""
        ...
