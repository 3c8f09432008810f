from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest

from tests.fakes.front_door import FrontDoor
from tests.fakes.process import Process
from tests.fakes.upstream import RecordingUpstream
from tests.gateway.conftest import client_of

StartProcess = Callable[[str], Process]


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
