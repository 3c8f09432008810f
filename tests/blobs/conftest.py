from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from memory_gateway.blobs.folder import FolderBlobs
from memory_gateway.blobs.port import BlobStore
from memory_gateway.kit.files import PART_NAME
from tests.fakes.s3 import Bucket


class Kept(NamedTuple):
    """A store, and what really lies in it."""

    blobs: BlobStore
    all: Callable[[], dict[str, bytes]]


def _in_folder(root: Path) -> dict[str, bytes]:
    found = [path for path in root.rglob("*") if path.is_file() and path.name != PART_NAME]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


@pytest.fixture(params=["folder", "s3"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Kept:
    if request.param == "s3":
        bucket: Bucket = request.getfixturevalue("bucket")
        return Kept(bucket.blobs(), bucket.objects)
    root = tmp_path / "storage"
    return Kept(FolderBlobs(root), lambda: _in_folder(root))


@pytest.fixture
def blobs(kept: Kept) -> BlobStore:
    return kept.blobs
