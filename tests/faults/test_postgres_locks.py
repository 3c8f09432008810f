"""Locks that somebody else holds for long: whoever waits is told so in bounded time, and others go on."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from memory_gateway.kit.errors import StorageUnavailable
from memory_gateway.storage import postgres
from memory_gateway.storage.port import Transaction
from memory_gateway.storage.postgres import PostgresDatabase, lock_number
from tests.fakes.databases import on_server
from tests.fakes.postgres import running_server

LOCK_SECONDS = 0.5
NOTE = "INSERT INTO notes VALUES (:owner)"


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    with running_server() as server:
        yield server


@pytest.fixture
async def database(server: Any, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PostgresDatabase]:
    """Its patience is short."""
    monkeypatch.setattr(postgres, "_LOCK_SECONDS", LOCK_SECONDS)
    monkeypatch.setattr(postgres, "_CONNECT_SECONDS", 2 * LOCK_SECONDS)
    monkeypatch.setitem(postgres._SESSION, "lock_timeout", f"{round(LOCK_SECONDS * 1000)}ms")
    await on_server(server.get_uri(), "DROP TABLE IF EXISTS notes", "CREATE TABLE notes (owner TEXT)")
    database = PostgresDatabase(server.get_uri(), connections=4)
    yield database
    await database.close()


@asynccontextmanager
async def held(server: Any, *statements: str) -> AsyncIterator[None]:
    """A transaction from outside that has done this and does not end."""
    connection = await asyncpg.connect(server.get_uri())
    async with connection.transaction():
        for statement in statements:
            await connection.execute(statement)
        yield
    await connection.close()


def advisory(owner: str) -> str:
    return f"SELECT pg_advisory_xact_lock({lock_number(owner)})"


async def note(database: PostgresDatabase, owner: str) -> None:
    async def work(transaction: Transaction) -> None:
        await transaction.execute(NOTE, {"owner": owner})

    await database.write(work, owner=owner)


async def noted(database: PostgresDatabase) -> list[str]:
    return sorted(owner for (owner,) in await database.fetch("SELECT owner FROM notes"))


async def test_however_many_wait_for_one_owners_lock_each_is_told_in_time_and_others_go_on(
    server: Any, database: PostgresDatabase
) -> None:
    await note(database, "anna")
    async with held(server, advisory("ann")):
        started = time.monotonic()
        waiting = asyncio.gather(*(note(database, "ann") for _ in range(12)), return_exceptions=True)
        await asyncio.sleep(0)
        await note(database, "anna")
        outcomes = await waiting
        took = time.monotonic() - started
    assert {type(outcome) for outcome in outcomes} == {StorageUnavailable}
    assert took < 4 * LOCK_SECONDS + 3, "twice the patience, not twelve times"
    await note(database, "ann")
    assert await noted(database) == ["ann", "anna", "anna"]


async def test_a_locked_table_is_unavailable_to_readers_and_writers(server: Any, database: PostgresDatabase) -> None:
    await note(database, "ann")
    async with held(server, "LOCK TABLE notes IN ACCESS EXCLUSIVE MODE"):
        for attempt in (note(database, "ann"), noted(database)):
            with pytest.raises(StorageUnavailable):
                await attempt
    await note(database, "ann")
    assert await noted(database) == ["ann", "ann"]


async def test_more_locked_owners_than_connections_hold_nobody_up_for_long(
    server: Any, database: PostgresDatabase
) -> None:
    owners = [f"user {number}" for number in range(12)]
    async with held(server, *map(advisory, owners)):
        started = time.monotonic()
        outcomes = await asyncio.gather(*(note(database, owner) for owner in owners), return_exceptions=True)
        took = time.monotonic() - started
    assert {type(outcome) for outcome in outcomes} == {StorageUnavailable}
    assert took < 6 * LOCK_SECONDS + 3
    await note(database, "ann")
    assert await noted(database) == ["ann"]
