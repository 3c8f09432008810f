from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from litestar import Litestar

from memory_gateway.kit.clock import system_clock
from memory_gateway.storage.migrate import migrate
from tests.fakes.databases import AnyDatabase, open_test_database
from tests.fakes.front_door import FrontDoor


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[AnyDatabase]:
    database = open_test_database(tmp_path / "gateway.db")
    await migrate(database, system_clock)
    yield database
    await database.close()


@pytest.fixture
def front(database: AnyDatabase, tmp_path: Path) -> FrontDoor:
    return FrontDoor(database, tmp_path)


@pytest.fixture
async def client(front: FrontDoor) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(front.app()) as client:
        yield client


def client_of(app: Litestar) -> httpx.AsyncClient:
    """Talks to the app without a network. A fault of the app becomes its 500, as it does on a server."""
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)  # type: ignore[arg-type]
    return httpx.AsyncClient(transport=transport, base_url="http://gateway")
