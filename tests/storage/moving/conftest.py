import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_gateway.kit.clock import system_clock
from memory_gateway.storage.migrate import migrate
from memory_gateway.storage.moving.columns import MoveRefused
from memory_gateway.storage.moving.move import Count, open_move
from memory_gateway.storage.postgres import PostgresDatabase
from tests.fakes.empty_postgres import EmptyPostgres, empty_postgres
from tests.fakes.full_tables import Rows, all_rows, fill, new_database


@pytest.fixture(scope="package")
def postgres() -> Iterator[EmptyPostgres]:
    with empty_postgres() as server:
        yield server


@pytest.fixture
def url(postgres: EmptyPostgres) -> str:
    """Of an empty database."""
    return postgres.new()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory-gateway.db"


def full(path: Path, rows: int = 9) -> None:
    connection = new_database(path)
    fill(connection, rows)
    connection.close()


def change(path: Path, statement: str) -> None:
    connection = new_database(path)
    connection.execute(statement)
    connection.close()


def rows_of(path: Path) -> Rows:
    connection = new_database(path)
    try:
        return all_rows(connection)
    finally:
        connection.close()


def moved(path: Path, url: str, *, batches: int | None = None) -> list[Count]:
    """Move all, or so many batches and no more."""

    async def run() -> list[Count]:
        async with open_move(path, url, system_clock) as move:
            done = 0
            async for _ in move.batches():
                done += 1
                if done == batches:
                    return []
            return await move.finish()

    return asyncio.run(run())


def refusal(path: Path, url: str) -> str:
    with pytest.raises(MoveRefused) as refused:
        moved(path, url)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def migrated(url: str) -> None:
    async def run() -> None:
        database = PostgresDatabase(url, connections=1)
        await migrate(database, system_clock)
        await database.close()

    asyncio.run(run())
