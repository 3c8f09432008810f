from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.fakes.databases import AnyDatabase
from tests.fakes.memory_service import ServiceHouse, open_house


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[ServiceHouse]:
    async with open_house(tmp_path) as house:
        yield house


@pytest.fixture
def database(house: ServiceHouse) -> AnyDatabase:
    return house.database


@pytest.fixture
async def client(house: ServiceHouse) -> AsyncIterator[httpx.AsyncClient]:
    async with house.client() as client:
        yield client
