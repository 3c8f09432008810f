"""Tables in memory against the log in the database: whatever happens to the log, the tables follow."""

from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from memory_gateway.memory_service.entries import nearest as nearest_room
from memory_gateway.memory_service.entries.nearest import Nearest
from memory_gateway.memory_service.entries.owners import open_owner, save_owner
from memory_gateway.memory_service.entries.signatures import RECORDS, level_of, shortened
from memory_gateway.memory_service.entries.stored import digest_of
from memory_gateway.storage.port import Transaction, Work
from tests.fakes.databases import AnyDatabase
from tests.fakes.entries import open_room

TEXT = digest_of("The bus leaves at nine.")


class Fault(Exception):
    pass


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[AnyDatabase]:
    async with open_room(tmp_path) as room:
        yield room.database


async def found(database: AnyDatabase, nearest: Nearest, user_no: int = 1) -> list[int]:
    async def work(transaction: Transaction) -> list[int]:
        near = await nearest.near(transaction, await open_owner(transaction, f"user {user_no}"), TEXT)
        return sorted(candidate.entry_no for candidate in near)

    return await database.write(work)


def entering(nearest: Nearest, entry_no: int, user_no: int = 1, *, fails: bool = False) -> Work[None]:
    async def work(transaction: Transaction) -> None:
        owner, size = await open_owner(transaction, f"user {user_no}"), len(TEXT.bigrams)
        records = np.zeros(1, dtype=RECORDS[level_of(size)])
        records["entry"], records["size"] = entry_no, size
        records["signature"] = shortened(TEXT.signature, level_of(size))
        await nearest.append(transaction, owner, level_of(size), records)
        await save_owner(transaction, owner)
        if fails:
            await nearest.near(transaction, owner, TEXT)
            raise Fault

    return work


async def enter(database: AnyDatabase, nearest: Nearest, entry_no: int, user_no: int = 1) -> None:
    await database.write(entering(nearest, entry_no, user_no))


async def test_what_another_process_wrote_is_seen(database: AnyDatabase) -> None:
    one, other = Nearest(), Nearest()
    await enter(database, one, 1)
    assert await found(database, other) == [1]
    await enter(database, one, 2)
    await enter(database, other, 3)
    assert await found(database, one) == await found(database, other) == [1, 2, 3]


async def test_users_have_tables_of_their_own(database: AnyDatabase) -> None:
    nearest = Nearest()
    await enter(database, nearest, 1)
    await enter(database, nearest, 1, user_no=2)
    await enter(database, nearest, 2, user_no=2)
    assert await found(database, nearest) == [1]
    assert await found(database, nearest, user_no=2) == [1, 2]
    assert await found(database, nearest, user_no=3) == []


async def test_a_table_is_read_once_and_then_continued(database: AnyDatabase) -> None:
    nearest = Nearest()
    await enter(database, nearest, 1)
    assert await found(database, nearest) == [1]
    (held,) = nearest._tables.values()
    for number in range(2, 6):
        await enter(database, Nearest(), number)
        assert await found(database, nearest) == list(range(1, number + 1))
    assert list(nearest._tables.values()) == [held]
    assert held.lines == 5


async def test_what_was_rolled_back_is_forgotten(database: AnyDatabase) -> None:
    nearest = Nearest()
    await enter(database, nearest, 1)
    with pytest.raises(Fault):
        await database.write(entering(nearest, 2, fails=True))
    assert await found(database, nearest) == [1]
    with pytest.raises(Fault):
        await database.write(entering(nearest, 3, fails=True))
    # as long as the line that was rolled back, and in its place
    await enter(database, nearest, 4)
    assert await found(database, nearest) == [1, 4]


async def test_a_first_line_that_was_rolled_back_is_forgotten(database: AnyDatabase) -> None:
    nearest = Nearest()
    with pytest.raises(Fault):
        await database.write(entering(nearest, 1, fails=True))
    assert await found(database, nearest) == []


async def test_a_log_goes_on_in_the_next_chunk(database: AnyDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest_room, "_CHUNK_BYTES", 200)
    one, other = Nearest(), Nearest()
    for number in range(1, 12):
        await enter(database, one, number)
        if number % 3 == 0:
            assert await found(database, other) == list(range(1, number + 1))
    chunks = await database.fetch("SELECT chunk_no, LENGTH(records) FROM memory_signatures ORDER BY chunk_no")
    assert chunks == [(number, 160) for number in range(5)] + [(5, 80)]


async def test_a_worn_log_is_made_anew(database: AnyDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest_room, "_LEAST_GARBAGE", 4)
    one, other = Nearest(), Nearest()
    for number in range(40):
        await enter(database, one, 1 + number % 3)
        assert 1 in await found(database, one)
    assert await found(database, other) == [1, 2, 3]
    ((lines,),) = await database.fetch("SELECT SUM(LENGTH(records)) / 80 FROM memory_signatures")
    assert lines <= 12


async def test_tables_are_dropped_when_memory_is_short_and_read_again(database: AnyDatabase) -> None:
    nearest = Nearest(most_bytes=25_000)
    for user_no in range(1, 9):
        await enter(database, nearest, user_no, user_no=user_no)
    for _ in range(2):
        for user_no in range(1, 9):
            assert await found(database, nearest, user_no=user_no) == [user_no]
            assert 0 < nearest._bytes <= 25_000
            assert nearest._bytes == sum(held.table.bytes_held for held in nearest._tables.values())
