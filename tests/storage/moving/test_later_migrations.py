"""A schema of today takes the migrations of tomorrow, on PostgreSQL as on SQLite, with all that is in it."""

import asyncio
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest

from memory_gateway.kit.clock import system_clock
from memory_gateway.storage import migrate as migrating
from memory_gateway.storage.migrate import UnknownMigration, migrate, migrations
from memory_gateway.storage.port import Database, DatabaseFault
from memory_gateway.storage.postgres import PostgresDatabase
from memory_gateway.storage.sqlite import SqliteDatabase

pytestmark = pytest.mark.slow

LATER = """
ALTER TABLE users ADD COLUMN color TEXT NOT NULL DEFAULT 'blue';
UPDATE users SET color = 'red' WHERE user_id = 'ann';
"""
BROKEN = """
ALTER TABLE users ADD COLUMN size TEXT;
INSERT INTO no_such_table VALUES (1);
"""
ADD_USERS = "INSERT INTO users (user_id, folded_id, created_at) VALUES ('ann', 'ann', 't'), ('bob', 'bob', 't')"
USERS = "SELECT user_id, color FROM users ORDER BY user_id"
Ship = Callable[[str], int]


@pytest.fixture(params=["sqlite", "postgres"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def opened(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[], Database]:
    """Opens the one database of this test."""
    if kind == "sqlite":
        return lambda: SqliteDatabase(tmp_path / "test.db")
    url = request.getfixturevalue("url")
    return lambda: PostgresDatabase(url, connections=2)


@pytest.fixture
def ship(opened: Callable[[], Database], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ship:
    """Puts one more file behind those that ship; its number."""
    folder = tmp_path / "shipped"
    folder.mkdir()
    for name in ("migrations", "migrations_postgres"):
        (folder / name).mkdir()
        for entry in files(f"memory_gateway.storage.{name}").iterdir():
            if entry.name.endswith(".sql"):
                (folder / name / entry.name).write_text(entry.read_text("utf-8"), "utf-8")
    monkeypatch.setattr(migrating, "files", lambda package: folder / package.rpartition(".")[2])

    def put(statements: str) -> int:
        number = migrations()[-1].number + 1
        for name in ("migrations", "migrations_postgres"):
            (folder / name / f"{number:04}_later.sql").write_text(statements, "utf-8")
        return number

    return put


async def brought_up(opened: Callable[[], Database]) -> list[int]:
    """The numbers that were run."""
    database = opened()
    try:
        return [migration.number for migration in await migrate(database, system_clock)]
    finally:
        await database.close()


async def write(opened: Callable[[], Database], statement: str) -> None:
    database = opened()
    try:
        await database.write(lambda transaction: transaction.execute(statement))
    finally:
        await database.close()


async def rows(opened: Callable[[], Database], statement: str) -> list[tuple[object, ...]]:
    database = opened()
    try:
        return await database.fetch(statement)
    finally:
        await database.close()


async def test_a_later_migration_finds_what_was_stored_before(opened: Callable[[], Database], ship: Ship) -> None:
    await brought_up(opened)
    await write(opened, ADD_USERS)
    number = ship(LATER)
    assert await brought_up(opened) == [number]
    assert await rows(opened, USERS) == [("ann", "red"), ("bob", "blue")]
    assert await brought_up(opened) == []


async def test_several_processes_run_a_later_migration_once(opened: Callable[[], Database], ship: Ship) -> None:
    await brought_up(opened)
    number = ship(LATER)
    ran = await asyncio.gather(*(brought_up(opened) for _ in range(4)))
    assert sorted(ran) == [[], [], [], [number]]


async def test_a_migration_that_fails_leaves_nothing_of_itself(opened: Callable[[], Database], ship: Ship) -> None:
    await brought_up(opened)
    ship(BROKEN)
    with pytest.raises(DatabaseFault):
        await brought_up(opened)
    with pytest.raises(DatabaseFault):
        await rows(opened, "SELECT size FROM users")
    ship_number = migrations()[-1].number
    assert (ship_number,) not in await rows(opened, "SELECT number FROM schema_migrations")


async def test_a_database_of_a_newer_release_is_not_touched(
    opened: Callable[[], Database], ship: Ship, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = ship(LATER)
    await brought_up(opened)
    monkeypatch.setattr(migrating, "files", files)
    with pytest.raises(UnknownMigration, match=str(number)):
        await brought_up(opened)


def test_both_databases_have_the_same_last_migration() -> None:
    assert migrations("migrations_postgres")[-1].number == migrations("migrations")[-1].number
