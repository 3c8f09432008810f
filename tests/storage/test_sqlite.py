import asyncio
import random
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import pytest

from memory_gateway.kit.errors import StorageUnavailable
from memory_gateway.storage import sqlite
from memory_gateway.storage.port import DatabaseFault, Transaction, UniqueViolation
from memory_gateway.storage.sqlite import SqliteDatabase, connect
from tests.storage.conftest import INSERT, TEXTS, create_notes


async def add(database: SqliteDatabase, text: str) -> None:
    async def work(transaction: Transaction) -> None:
        await transaction.execute(INSERT, {"text": text})

    await database.write(work)


async def texts(database: SqliteDatabase) -> list[str]:
    return [text for (text,) in await database.fetch(TEXTS)]


async def test_what_a_write_returned_for_is_read_at_once_inline_and_on_a_reader(database: SqliteDatabase) -> None:
    await add(database, "one")

    async def on_reader(transaction: Transaction) -> list[str]:
        return [text for (text,) in await transaction.fetch(TEXTS)]

    assert await texts(database) == ["one"]
    assert await database.read(on_reader) == ["one"]


async def test_waiting_writers_share_commits(database: SqliteDatabase) -> None:
    before = database.commits

    async def writer(name: int) -> None:
        for number in range(10):
            await add(database, f"{name}-{number}")

    await asyncio.gather(*(writer(name) for name in range(64)))
    assert len(await texts(database)) == 640
    assert 640 / (database.commits - before) >= 8


async def test_a_failing_transaction_leaves_nothing_and_spares_the_others_of_its_group(
    database: SqliteDatabase,
) -> None:
    async def half(transaction: Transaction) -> None:
        await transaction.execute(INSERT, {"text": "half"})
        raise ValueError("no")

    outcomes = await asyncio.gather(
        add(database, "first"), database.write(half), add(database, "second"), return_exceptions=True
    )
    assert [type(outcome) for outcome in outcomes] == [type(None), ValueError, type(None)]
    assert await texts(database) == ["first", "second"]


async def test_a_taken_key_is_a_unique_violation(database: SqliteDatabase) -> None:
    await add(database, "same")
    with pytest.raises(UniqueViolation):
        await add(database, "same")
    assert await texts(database) == ["same"]


async def test_a_rule_of_the_table_that_is_broken_is_a_fault_and_not_a_taken_key(database: SqliteDatabase) -> None:
    async def create(transaction: Transaction) -> None:
        await transaction.execute("CREATE TABLE ruled (id TEXT PRIMARY KEY, n INTEGER NOT NULL CHECK (n > 0))")
        await transaction.execute("INSERT INTO ruled (id, n) VALUES ('a', 1)")

    async def insert(transaction: Transaction, values: str) -> None:
        await transaction.execute(f"INSERT INTO ruled (id, n) VALUES ({values})")

    await database.write(create)
    kinds = []
    for values in ("'b', 0", "'b', NULL", "'a', 1"):
        with pytest.raises(DatabaseFault) as caught:
            await database.write(partial(insert, values=values))
        kinds.append(caught.type)
    assert kinds == [DatabaseFault, DatabaseFault, UniqueViolation]


def test_a_join_is_not_planned_anew_for_every_parameter(tmp_path: Path) -> None:
    connection = connect(tmp_path / "joined.db")
    connection.execute("CREATE TABLE a (id TEXT UNIQUE, b INTEGER); CREATE TABLE b (id INTEGER PRIMARY KEY, name TEXT)")
    asked: list[int] = []

    def allow(*details: Any) -> int:
        """SQLite asks while it plans a statement."""
        asked.append(details[0])
        return apsw.SQLITE_OK

    def look_up(wanted: str) -> int:
        asked.clear()
        connection.execute("SELECT name FROM a JOIN b ON b.id = a.b WHERE a.id = :id", {"id": wanted}).fetchall()
        return len(asked)

    connection.authorizer = allow
    first, second, third = look_up("one"), look_up("two"), look_up("three")
    connection.close()
    assert first > 0
    assert (second, third) == (0, 0)


async def test_a_statement_that_the_database_refuses_is_a_fault_of_the_port_however_it_is_run(
    database: SqliteDatabase,
) -> None:
    async def wrong(transaction: Transaction) -> None:
        await transaction.execute("SELECT nothing FROM nowhere")

    for run in (database.read(wrong), database.write(wrong), database.fetch("SELECT nothing FROM nowhere")):
        with pytest.raises(DatabaseFault):
            await run


async def test_a_full_disk_refuses_the_write_and_keeps_what_was_acknowledged(database: SqliteDatabase) -> None:
    async def shrink(transaction: Transaction) -> None:
        ((pages,),) = await transaction.fetch("PRAGMA page_count")
        await transaction.fetch(f"PRAGMA max_page_count = {pages + 1}")

    await add(database, "kept")
    await database.write(shrink)
    with pytest.raises(StorageUnavailable):
        await add(database, "x" * 100_000)
    assert await texts(database) == ["kept"]

    async def grow(transaction: Transaction) -> None:
        await transaction.fetch("PRAGMA max_page_count = 100000")

    await database.write(grow)
    await add(database, "later")
    assert await texts(database) == ["kept", "later"]


class FailingAtCommit:
    """Stands between SQLite and the writer: once, neither COMMIT nor a ROLLBACK after it can be done."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fault: Exception | None) -> None:
        self.opened: list[apsw.Connection] = []
        self._fault = fault
        monkeypatch.setattr(sqlite, "connect", self._connect)

    def _connect(self, path: Path) -> apsw.Connection:
        self.opened.append(connect(path))
        return self.opened[-1]

    def arm(self) -> None:
        self.opened[0].authorizer = self._authorize  # of the connection that was opened first, the writer's

    def _authorize(self, action: int, what: str | None, *_: object) -> int:
        if action == apsw.SQLITE_TRANSACTION and what in {"COMMIT", "ROLLBACK"}:
            if self._fault is not None:
                raise self._fault
            return apsw.SQLITE_DENY
        return apsw.SQLITE_OK


@pytest.mark.parametrize("fault", [None, MemoryError("no")])
async def test_a_writer_that_can_neither_commit_nor_go_back_takes_up_its_work_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception | None
) -> None:
    failing = FailingAtCommit(monkeypatch, fault)
    database = SqliteDatabase(tmp_path / "test.db")
    await create_notes(database)
    await add(database, "kept")
    failing.arm()
    async with asyncio.timeout(10):
        with pytest.raises((StorageUnavailable, DatabaseFault)):
            await add(database, "lost")
        await add(database, "later")
        assert await texts(database) == ["kept", "later"]
        await database.close()


async def test_work_that_would_end_its_thread_ends_itself_alone(database: SqliteDatabase) -> None:
    async def leaving(transaction: Transaction) -> None:
        await transaction.execute(INSERT, {"text": "never"})
        raise SystemExit(1)

    async with asyncio.timeout(10):
        with pytest.raises(StorageUnavailable):
            await database.write(leaving)
        await add(database, "later")
    assert await texts(database) == ["later"]


async def test_a_waiter_whose_loop_is_closed_disturbs_nobody(database: SqliteDatabase) -> None:
    def leave() -> None:
        """Asks for a write on a loop that is closed before the write is done."""
        loop = asyncio.new_event_loop()
        waiting = loop.create_task(add(database, "left"))
        loop.run_until_complete(asyncio.sleep(0))
        waiting.cancel()
        loop.run_until_complete(asyncio.wait([waiting]))
        loop.close()

    await asyncio.to_thread(leave)
    await add(database, "staying")
    assert "staying" in await texts(database)


async def test_a_read_sees_one_snapshot(database: SqliteDatabase) -> None:
    await add(database, "before")

    async def twice(transaction: Transaction) -> tuple[int, int]:
        first = len(await transaction.fetch(TEXTS))
        asyncio.run_coroutine_threadsafe(add(database, "meanwhile"), loop).result()
        return first, len(await transaction.fetch(TEXTS))

    loop = asyncio.get_running_loop()
    assert await database.read(twice) == (1, 1)
    assert await texts(database) == ["before", "meanwhile"]


async def test_readers_cannot_write(database: SqliteDatabase) -> None:
    async def sneak(transaction: Transaction) -> None:
        await transaction.execute(INSERT, {"text": "sneaked"})

    with pytest.raises(StorageUnavailable):
        await database.read(sneak)
    assert await texts(database) == []


async def test_work_that_waits_for_anything_else_is_refused(database: SqliteDatabase) -> None:
    async def sleepy(transaction: Transaction) -> None:
        await transaction.execute(INSERT, {"text": "never"})
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="nothing but its transaction"):
        await database.write(sleepy)
    assert await texts(database) == []


async def test_closing_finishes_what_was_accepted(database: SqliteDatabase, tmp_path: Path) -> None:
    accepted = [asyncio.ensure_future(add(database, str(number))) for number in range(20)]
    await asyncio.sleep(0)
    await database.close()
    await asyncio.gather(*accepted)
    with pytest.raises(StorageUnavailable):
        await add(database, "too late")
    with pytest.raises(StorageUnavailable):
        await texts(database)
    with pytest.raises(StorageUnavailable):
        await database.read(lambda transaction: transaction.fetch(TEXTS))
    again = SqliteDatabase(tmp_path / "test.db")
    assert len(await texts(again)) == 20
    await again.close()


async def test_a_writer_who_goes_away_does_not_disturb_the_others(database: SqliteDatabase) -> None:
    leaving = asyncio.ensure_future(add(database, "leaving"))
    await asyncio.sleep(0)
    leaving.cancel()
    await add(database, "staying")
    assert "staying" in await texts(database)


def test_every_pragma_is_in_force(tmp_path: Path) -> None:
    """A string of statements is run only as far as its rows are fetched."""
    connection = connect(tmp_path / "test.db")
    wanted = {
        "journal_mode": "wal",
        "synchronous": 2,
        "temp_store": 2,
        "secure_delete": 1,
        "journal_size_limit": 67_108_864,
    }
    assert {name: connection.execute(f"PRAGMA {name}").fetchall()[0][0] for name in wanted} == wanted
    connection.close()


def holders(folder: Path, word: bytes) -> list[str]:
    return [path.name for path in folder.iterdir() if word in path.read_bytes()]


async def test_what_was_deleted_is_in_no_file_after_a_scrub(database: SqliteDatabase, tmp_path: Path) -> None:
    """Rows of two owners are written in turns and of growing length, so that their pages are split again and again."""
    order = random.Random(1)
    for number in order.sample(range(2000), 2000):
        owner = "gone" if number % 2 else "kept"
        row = {"id": number, "text": f"{owner}{number} " * order.randint(1, 40)}
        await database.write(partial(_execute, "INSERT INTO note (id, text) VALUES (:id, :text)", row))
    await database.write(partial(_execute, "DELETE FROM note WHERE text LIKE 'gone%'", {}))
    assert holders(tmp_path, b"gone") != []
    await database.scrub()
    assert holders(tmp_path, b"gone") == []
    assert len(await texts(database)) == 1000
    await add(database, "later")
    await database.close()
    assert holders(tmp_path, b"gone") == []
    assert holders(tmp_path, b"later") == ["test.db"]


async def _execute(sql: str, params: dict[str, Any], transaction: Transaction) -> None:
    await transaction.execute(sql, params)


async def test_a_scrub_waits_for_a_reader_of_an_older_state_and_then_says_that_it_cannot(
    database: SqliteDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_SCRUB_BUSY_MS", 10)
    await add(database, "gone")
    reader = connect(tmp_path / "test.db")
    reader.execute("BEGIN")
    assert reader.execute(TEXTS).fetchall() == [("gone",)]
    await database.write(partial(_execute, "DELETE FROM note", {}))
    with pytest.raises(StorageUnavailable, match="still being read"):
        await database.scrub()
    scrubbing = asyncio.create_task(database.scrub())
    await asyncio.sleep(0.05)
    reader.close(True)
    await scrubbing
    assert holders(tmp_path, b"gone") == []


async def test_writes_go_on_during_and_after_a_scrub(database: SqliteDatabase) -> None:
    await asyncio.gather(database.scrub(), *(add(database, str(number)) for number in range(20)), database.scrub())
    assert len(await texts(database)) == 20


def test_a_file_that_is_no_database_is_said_in_the_words_of_the_port(tmp_path: Path) -> None:
    (tmp_path / "test.db").write_bytes(b"something else " * 100)
    with pytest.raises(StorageUnavailable) as refused:
        SqliteDatabase(tmp_path / "test.db")
    assert isinstance(refused.value.__cause__, apsw.NotADBError)
