from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from memory_gateway.kit.ids import uuid7_id
from memory_gateway.memory_service.entries.service import Entries
from memory_gateway.memory_service.thinking.service import Thinking
from memory_gateway.storage.migrate import migrate
from memory_gateway.storage.sqlite import SqliteDatabase
from tests.fakes.clock import TurnedClock
from tests.fakes.memory_service import ServiceHouse


@pytest.fixture
def clock() -> TurnedClock:
    return TurnedClock()


@pytest.fixture
async def database(tmp_path: Path, clock: TurnedClock) -> AsyncIterator[SqliteDatabase]:
    database = SqliteDatabase(tmp_path / "service.db")
    await migrate(database, clock)
    yield database
    await database.close()


@pytest.fixture
async def house(database: SqliteDatabase, clock: TurnedClock) -> AsyncIterator[ServiceHouse]:
    entries = Entries(database, clock, uuid7_id)
    entries.start()
    yield ServiceHouse(database, clock, entries, Thinking(database, clock, uuid7_id))
    await entries.close()


@pytest.fixture
async def client(house: ServiceHouse) -> AsyncIterator[httpx.AsyncClient]:
    async with house.client() as client:
        yield client
