"""What only a server has: transactions side by side, connections that end, a server that goes and comes back."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from memory_gateway.kit.errors import StorageUnavailable
from memory_gateway.storage.dialect import for_postgres
from memory_gateway.storage.port import DatabaseFault, Transaction, UniqueViolation
from memory_gateway.storage.postgres import PostgresDatabase
from tests.fakes.databases import on_server
from tests.fakes.postgres import running_server

READ = "SELECT amount FROM balances WHERE owner = :owner"
SET = "UPDATE balances SET amount = :amount WHERE owner = :owner"


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    with running_server() as server:
        yield server


@pytest.fixture
async def database(server: Any) -> AsyncIterator[PostgresDatabase]:
    await on_server(server.get_uri(), "DROP TABLE IF EXISTS balances")
    await on_server(server.get_uri(), "CREATE TABLE balances (owner TEXT PRIMARY KEY, amount BIGINT NOT NULL)")
    await on_server(server.get_uri(), "INSERT INTO balances VALUES ('ann', 0), ('anna', 0)")
    database = PostgresDatabase(server.get_uri(), connections=6)
    yield database
    await database.close()


async def pay(database: PostgresDatabase, owner: str, amount: int = 1) -> None:
    """A transaction that decides by what it reads."""

    async def work(transaction: Transaction) -> None:
        ((before,),) = await transaction.fetch(READ, {"owner": owner})
        await asyncio.sleep(0)
        await transaction.execute(SET, {"owner": owner, "amount": before + amount})

    await database.write(work, owner=owner)


async def balance(database: PostgresDatabase, owner: str = "ann") -> int:
    ((amount,),) = await database.fetch(READ, {"owner": owner})
    return int(amount)


def test_each_name_is_one_numbered_parameter_however_often_it_stands() -> None:
    statement = for_postgres("SELECT 'a' || :x FROM t WHERE +user_no = :n AND (:x = x OR y = :n) AND z = 'resource://'")
    assert statement.text == "SELECT 'a' || $1 FROM t WHERE user_no = $2 AND ($1 = x OR y = $2) AND z = 'resource://'"
    assert statement.names == ("x", "n")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT x FROM t WHERE +other = :n",
        "INSERT INTO t (internal_uri) VALUES (:n) ON CONFLICT (internal_uri, user_id) DO NOTHING",
    ],
)
def test_what_it_would_leave_wrong_is_refused(sql: str) -> None:
    with pytest.raises(ValueError, match="otherwise"):
        for_postgres(sql)


async def test_the_work_of_one_owner_is_one_after_the_other_also_of_other_processes(
    server: Any, database: PostgresDatabase
) -> None:
    other = PostgresDatabase(server.get_uri(), connections=6)
    await asyncio.gather(
        *(pay(one, owner) for one in (database, other) for owner in ("ann", "anna") for _ in range(30))
    )
    await other.close()
    assert (await balance(database), await balance(database, "anna")) == (60, 60)


async def test_an_owners_many_writes_leave_connections_to_others(database: PostgresDatabase) -> None:
    held, go = asyncio.Event(), asyncio.Event()

    async def hold(_: Transaction) -> None:
        held.set()
        await go.wait()

    holding = asyncio.create_task(database.write(hold, owner="ann"))
    await held.wait()
    waiting = [asyncio.create_task(pay(database, "ann")) for _ in range(20)]
    async with asyncio.timeout(10):
        await pay(database, "anna")
    go.set()
    await asyncio.gather(holding, *waiting)
    assert (await balance(database), await balance(database, "anna")) == (20, 1)


async def test_a_failed_work_leaves_nothing_behind(database: PostgresDatabase) -> None:
    async def work(transaction: Transaction) -> None:
        await transaction.execute(SET, {"owner": "ann", "amount": 9})
        await transaction.execute("INSERT INTO balances VALUES ('anna', 1)")

    with pytest.raises(UniqueViolation):
        await database.write(work, owner="ann")
    assert await balance(database) == 0


async def test_work_that_goes_on_after_a_failed_statement_is_a_fault_and_not_a_silent_loss(
    database: PostgresDatabase,
) -> None:
    async def work(transaction: Transaction) -> None:
        await transaction.execute(SET, {"owner": "ann", "amount": 9})
        with pytest.raises(Exception, match="duplicate key"):
            await transaction.execute("INSERT INTO balances VALUES ('anna', 1)")

    with pytest.raises(DatabaseFault, match="nothing was stored"):
        await database.write(work, owner="ann")
    assert await balance(database) == 0


async def test_a_cancelled_write_is_undone_and_its_connection_is_fit_for_use(database: PostgresDatabase) -> None:
    begun = asyncio.Event()

    async def work(transaction: Transaction) -> None:
        await transaction.execute(SET, {"owner": "ann", "amount": 9})
        begun.set()
        await transaction.fetch("SELECT pg_sleep(60)")

    for _ in range(8):  # more than there are connections
        begun.clear()
        writing = asyncio.create_task(database.write(work, owner="ann"))
        await begun.wait()
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
    assert await balance(database) == 0
    await pay(database, "ann")
    assert await balance(database) == 1


async def test_a_read_sees_one_moment(database: PostgresDatabase) -> None:
    async def work(transaction: Transaction) -> list[int]:
        first = (await transaction.fetch(READ, {"owner": "ann"}))[0][0]
        await pay(database, "ann")
        return [first, (await transaction.fetch(READ, {"owner": "ann"}))[0][0]]

    assert await database.read(work) == [0, 0]
    assert await balance(database) == 1


async def test_a_read_cannot_write(database: PostgresDatabase) -> None:
    with pytest.raises((DatabaseFault, StorageUnavailable)):
        await database.read(lambda transaction: transaction.execute(SET, {"owner": "ann", "amount": 9}))


async def test_transactions_that_block_each_other_are_tried_again(database: PostgresDatabase) -> None:
    both = asyncio.Barrier(2) if hasattr(asyncio, "Barrier") else None
    met = False

    def crosswise(first: str, second: str) -> Any:
        async def work(transaction: Transaction) -> None:
            nonlocal met
            await transaction.execute("UPDATE balances SET amount = amount + 1 WHERE owner = :owner", {"owner": first})
            if not met and both is not None:
                await both.wait()
                met = True
            await transaction.execute("UPDATE balances SET amount = amount + 1 WHERE owner = :owner", {"owner": second})

        return work

    await asyncio.gather(
        database.write(crosswise("ann", "anna"), owner="x"), database.write(crosswise("anna", "ann"), owner="y")
    )
    assert (await balance(database), await balance(database, "anna")) == (2, 2)


async def test_dropped_connections_are_made_anew(server: Any, database: PostgresDatabase) -> None:
    await asyncio.gather(*(pay(database, "ann") for _ in range(3)), *(balance(database) for _ in range(6)))
    await on_server(
        server.get_uri(), "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
    )
    assert [await balance(database) for _ in range(8)] == [3] * 8


@pytest.fixture
def own_server() -> Iterator[Any]:
    with running_server() as server:
        yield server


async def test_a_server_that_is_away_is_unavailable_and_the_next_try_finds_it_again(own_server: Any) -> None:
    await on_server(own_server.get_uri(), "CREATE TABLE balances (owner TEXT PRIMARY KEY, amount BIGINT NOT NULL)")
    await on_server(own_server.get_uri(), "INSERT INTO balances VALUES ('ann', 0)")
    database = PostgresDatabase(own_server.get_uri())
    await pay(database, "ann")
    await asyncio.to_thread(own_server.stop)
    for _ in range(2):
        with pytest.raises(StorageUnavailable):
            await pay(database, "ann")
        with pytest.raises(StorageUnavailable):
            await balance(database)
    await asyncio.to_thread(own_server.start)
    await pay(database, "ann")
    assert await balance(database) == 2
    await database.close()


@pytest.mark.parametrize(
    "url", ["postgresql://nobody@127.0.0.1:1/none", "postgresql:///none?host=/nowhere", "postgresql://h:x/none"]
)
async def test_a_server_that_is_not_there_is_unavailable(url: str) -> None:
    database = PostgresDatabase(url)
    with pytest.raises(StorageUnavailable):
        await database.fetch("SELECT 1")
    await database.close()


async def test_a_read_that_runs_into_others_is_tried_again_and_is_then_unavailable(database: PostgresDatabase) -> None:
    failures = 1

    async def work(transaction: Transaction) -> list[Any]:
        nonlocal failures
        failures -= 1
        if failures >= 0:
            await transaction.execute("DO $$ BEGIN RAISE SQLSTATE '40P01'; END $$")
        return await transaction.fetch(READ, {"owner": "ann"})

    assert await database.read(work) == [(0,)]
    failures = 2
    with pytest.raises(StorageUnavailable):
        await database.read(work)


async def test_a_schema_that_changes_meanwhile_is_no_fault(server: Any, database: PostgresDatabase) -> None:
    every = "SELECT * FROM balances WHERE owner = :owner"

    async def work(transaction: Transaction) -> int:
        return len((await transaction.fetch(every, {"owner": "ann"}))[0])

    await asyncio.gather(*(database.write(work, owner=str(number)) for number in range(12)))
    await on_server(server.get_uri(), "ALTER TABLE balances ADD COLUMN more TEXT")
    assert await database.write(work, owner="ann") == 3
    assert await database.read(work) == 3
