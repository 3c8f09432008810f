from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memory_gateway.storage.leases import Leases
from memory_gateway.storage.migrate import migrate
from memory_gateway.storage.sqlite import SqliteDatabase
from tests.fakes.clock import TurnedClock


@pytest.fixture
async def migrated(tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
    opened = SqliteDatabase(tmp_path / "test.db")
    await migrate(opened, TurnedClock())
    yield opened
    await opened.close()


async def test_a_lease_has_one_holder_until_it_runs_out_or_is_given_back(migrated: SqliteDatabase) -> None:
    clock = TurnedClock()
    mine, theirs = Leases(migrated, clock, "mine"), Leases(migrated, clock, "theirs")
    assert await mine.acquire("work", seconds=10)
    assert not await theirs.acquire("work", seconds=10)
    assert await theirs.acquire("other work", seconds=10)
    assert await mine.acquire("work", seconds=10), "the holder renews"
    clock.forward(seconds=10)
    assert await theirs.acquire("work", seconds=10)
    assert not await mine.acquire("work", seconds=10)
    await mine.release("work")
    assert not await mine.acquire("work", seconds=10), "only the holder gives back"
    await theirs.release("work")
    assert await mine.acquire("work", seconds=10)
