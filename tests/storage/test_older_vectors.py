"""A database of the release before vectors lay in sets: what it has is its first set, and is searched as before."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memory_gateway.engine.held_vectors import HeldVectors, as_bytes, served_set, stored_model
from memory_gateway.storage import migrate as migrating
from memory_gateway.storage.migrate import migrate, migrations
from memory_gateway.storage.port import Database, Transaction
from memory_gateway.storage.postgres import PostgresDatabase
from memory_gateway.storage.sqlite import SqliteDatabase
from tests.fakes.clock import TurnedClock
from tests.fakes.databases import on_postgres
from tests.fakes.empty_postgres import empty_postgres

BEFORE = 14
ROWS = np.random.default_rng(1).normal(size=(1030, 8)).astype(np.float32)
MODEL = stored_model("m1", 8)
SPACE = """
INSERT INTO engine_spaces (space_no, user_id, app_id, project_id, turn_count, embedded_count, embedding_model)
VALUES (7, 'ann', 'a', 'p', 1040, 1030, :model)
"""
STATEMENTS = (
    SPACE,
    "INSERT INTO engine_vectors (space_no, block_no, vectors) VALUES (7, 0, :first)",
    "INSERT INTO engine_vectors (space_no, block_no, vectors) VALUES (7, 1, :second)",
    "INSERT INTO engine_spaces (space_no, user_id, app_id, project_id) VALUES (8, 'anna', 'a', 'p')",
)
STORAGE = (
    "SELECT attstorage::text FROM pg_attribute WHERE attrelid = 'engine_vectors'::regclass AND attname = 'vectors'"
)


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str | Path]:
    if not on_postgres():
        yield tmp_path / "old.db"
        return
    with empty_postgres() as server:
        yield server.new()


def open_one(url: str | Path) -> SqliteDatabase | PostgresDatabase:
    return SqliteDatabase(url) if isinstance(url, Path) else PostgresDatabase(url)


def test_its_vectors_are_the_first_set_of_each_space(url: str | Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.run(write_as_before(url, monkeypatch))
    monkeypatch.undo()
    asyncio.run(read_as_now(url))


async def write_as_before(url: str | Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = open_one(url)
    before = [migration for migration in migrations(database.migrations) if migration.number <= BEFORE]
    monkeypatch.setattr(migrating, "migrations", lambda _: before)
    await migrate(database, TurnedClock())
    stored = as_bytes(ROWS)
    values = {"model": MODEL, "first": stored[:1024].tobytes(), "second": stored[1024:].tobytes()}

    async def fill(transaction: Transaction) -> None:
        for statement in STATEMENTS:
            await transaction.execute(statement, {key: values[key] for key in values if f":{key}" in statement})

    await database.write(fill)
    await database.close()


async def read_as_now(url: str | Path) -> None:
    database = open_one(url)
    await migrate(database, TurnedClock())
    query = ROWS[3] / np.linalg.norm(ROWS[3])

    async def cosines(transaction: Transaction) -> Any:
        served = await served_set(transaction, 7)
        assert served is not None
        assert (served.model, served.count, served.set_no) == (MODEL, 1030, 0)
        assert await served_set(transaction, 8) is None
        return await HeldVectors().cosines(transaction, 7, served, query, 1040)

    found = await database.read(cosines)
    expected = ROWS @ query / np.linalg.norm(ROWS, axis=1)
    np.testing.assert_allclose(found[:1030], expected, atol=0.02)
    assert np.isnan(found[1030:]).all()
    if isinstance(database, PostgresDatabase):
        assert await database.fetch(STORAGE) == [("e",)], "not compressed: vectors do not get smaller"
    await require_key(database)
    await database.close()


async def require_key(database: Database) -> None:
    async def second_set(transaction: Transaction) -> None:
        insert = "INSERT INTO engine_vectors (space_no, set_no, block_no, vectors) VALUES (7, 1, 0, :vectors)"
        await transaction.execute(insert, {"vectors": b"1"})

    await database.write(second_set)
    assert await database.fetch("SELECT COUNT(*) FROM engine_vectors WHERE space_no = 7") == [(3,)]
