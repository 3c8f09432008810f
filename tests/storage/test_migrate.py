import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memory_gateway.storage.migrate import UnknownMigration, migrate, migrations
from memory_gateway.storage.port import Transaction
from memory_gateway.storage.sqlite import SqliteDatabase


@pytest.fixture
async def empty(tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
    opened = SqliteDatabase(tmp_path / "empty.db")
    yield opened
    await opened.close()


def clock() -> int:
    return 1_780_000_000_000


def test_migrations_are_numbered_without_gaps() -> None:
    assert [migration.number for migration in migrations()] == list(range(1, len(migrations()) + 1))


async def test_each_migration_runs_once(empty: SqliteDatabase) -> None:
    assert await migrate(empty, clock) == migrations()
    assert await migrate(empty, clock) == []


async def test_two_starts_at_once_migrate_once(empty: SqliteDatabase, tmp_path: Path) -> None:
    other = SqliteDatabase(tmp_path / "empty.db")
    ran = await asyncio.gather(migrate(empty, clock), migrate(other, clock))
    await other.close()
    assert sorted(map(len, ran)) == [0, len(migrations())]


async def test_a_database_of_a_newer_version_is_not_touched(empty: SqliteDatabase) -> None:
    await migrate(empty, clock)

    async def from_the_future(transaction: Transaction) -> None:
        await transaction.execute("INSERT INTO schema_migrations VALUES (9999, 'future', 'x')")

    await empty.write(from_the_future)
    with pytest.raises(UnknownMigration, match="9999"):
        await migrate(empty, clock)
