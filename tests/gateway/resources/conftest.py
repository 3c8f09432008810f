from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest

from memory_gateway.blobs.port import BlobStore
from tests.fakes.databases import AnyDatabase
from tests.fakes.front_door import FrontDoor
from tests.fakes.process import Process
from tests.fakes.s3 import Bucket
from tests.fakes.upstream import RecordingUpstream
from tests.gateway.conftest import client_of

StartProcess = Callable[[str], Process]
_ON_BOTH_STORES = {"test_deleting", "test_reading", "test_upload"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """On a folder, and on a bucket too unless the test looks into the folder itself."""
    rooms = metafunc.module.__name__.rpartition(".")[2]
    if rooms in _ON_BOTH_STORES and "front" in metafunc.fixturenames and "storage_root" not in metafunc.fixturenames:
        metafunc.parametrize("blobs", ["folder", "s3"], indirect=True)


@pytest.fixture
def blobs(request: pytest.FixtureRequest) -> BlobStore | None:
    if getattr(request, "param", "folder") == "folder":
        return None
    bucket: Bucket = request.getfixturevalue("bucket")
    return bucket.blobs()


@pytest.fixture
def front(database: AnyDatabase, tmp_path: Path, blobs: BlobStore | None) -> FrontDoor:
    return FrontDoor(database, tmp_path, blobs=blobs)


@pytest.fixture
def upstream(front: FrontDoor) -> RecordingUpstream:
    return front.upstream


@pytest.fixture
async def start(front: FrontDoor) -> AsyncIterator[StartProcess]:
    """Start a process; its argument tells processes apart."""
    processes: list[Process] = []

    def start(holder: str) -> Process:
        processes.append(Process(front, holder, front.upstream))
        return processes[-1]

    yield start
    for process in processes:
        await process.close()


@pytest.fixture
def process(start: StartProcess) -> Process:
    return start("one")


@pytest.fixture
def storage_root(front: FrontDoor) -> Path:
    return front.storage_root


@pytest.fixture
async def client(process: Process) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(process.app()) as client:
        yield client


@pytest.fixture
async def ann(front: FrontDoor) -> dict[str, str]:
    return await front.headers_of("ann")


@pytest.fixture
async def anna(front: FrontDoor) -> dict[str, str]:
    return await front.headers_of("anna")
