"""PostgreSQL through asyncpg: a pool of connections, one transaction at a time for each owner."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from hashlib import blake2b
from typing import TypeVar
from weakref import WeakValueDictionary

import asyncpg

from memory_gateway.kit.errors import StorageUnavailable
from memory_gateway.storage.connections import Connection, Connections
from memory_gateway.storage.dialect import for_postgres
from memory_gateway.storage.port import (
    NO_PARAMS,
    DatabaseFault,
    DatabaseKind,
    Params,
    Row,
    Transaction,
    UniqueViolation,
    Work,
)

T = TypeVar("T")

_log = logging.getLogger(__name__)

_CONNECT_SECONDS = 10.0
_STATEMENT_SECONDS = 60.0
_LOCK_SECONDS = 30
_TRIES = 5
_CACHED_STATEMENTS = 512
_SESSION = {
    "application_name": "memory-gateway",
    "jit": "off",  # compiling takes longer than any statement of ours
    "lock_timeout": f"{_LOCK_SECONDS}s",
    "idle_in_transaction_session_timeout": "60s",  # a process that stands still holds nobody's lock
    "default_transaction_isolation": "read committed",
    "synchronous_commit": "on",
}
_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# also somebody who changes the schema meanwhile
_RAN_INTO_ANOTHER = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError, asyncpg.InvalidCachedStatementError)
# how a SQLSTATE begins: connection, authorisation, no such database, resources, operator, system, a read-only standby,
# a lock that took too long, a transaction rolled back
_UNAVAILABLE_STATES = ("08", "28", "3D", "53", "57", "58", "25006", "55P03", "40")
# an internal error of the driver is what an idle connection gives that the server has just closed
_LOST = (asyncpg.PostgresConnectionError, asyncpg.InterfaceError, asyncpg.InternalClientError)
_CONNECTION_FAULTS = (OSError, TimeoutError, *_LOST)


def _translated(error: Exception) -> Exception:
    """The driver's exception in the words of the port."""
    if isinstance(error, asyncpg.UniqueViolationError):
        return UniqueViolation(str(error))
    if _is_unavailable(error):
        return StorageUnavailable("the database cannot serve this request now")
    return DatabaseFault(f"{type(error).__name__}: {error}")


def _is_unavailable(error: Exception) -> bool:
    if isinstance(error, _RAN_INTO_ANOTHER):
        return True
    if isinstance(error, asyncpg.PostgresError):
        return str(error.sqlstate).startswith(_UNAVAILABLE_STATES)
    return isinstance(error, _CONNECTION_FAULTS) and not isinstance(error, asyncpg.DataError)


def lock_number(owner: str) -> int:
    """The owner as an advisory lock: 64 bits, signed. Two owners who share one only wait for each other."""
    return int.from_bytes(blake2b(owner.encode(), digest_size=8).digest(), "big", signed=True)


class _NothingDone(StorageUnavailable):
    """The connection was lost before the transaction began, so the work may be tried on another one."""


class PostgresTransaction(Transaction):
    """Statements on one connection; the caller begins and ends the transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def execute(self, sql: str, params: Params = NO_PARAMS) -> int:
        text, names = for_postgres(sql)
        status: str = await self._connection.execute(text, *[params[name] for name in names])
        last = status.rpartition(" ")[2]
        return int(last) if last.isdigit() else 0

    async def execute_many(self, sql: str, params: Iterable[Params]) -> None:
        text, names = for_postgres(sql)
        await self._connection.executemany(text, [[each[name] for name in names] for each in params])

    async def fetch(self, sql: str, params: Params = NO_PARAMS) -> list[Row]:
        text, names = for_postgres(sql)
        return [tuple(row) for row in await self._connection.fetch(text, *[params[name] for name in names])]

    async def fetch_one(self, sql: str, params: Params = NO_PARAMS) -> Row | None:
        text, names = for_postgres(sql)
        row = await self._connection.fetchrow(text, *[params[name] for name in names])
        return None if row is None else tuple(row)


class PostgresDatabase:
    """The `Database` port on a PostgreSQL, of version 15 or newer, that any number of processes may share.

    Connections are made when they are needed, and anew after the server was away. ``url`` as libpq takes it.
    """

    kind: DatabaseKind = "postgresql"
    migrations: str = "migrations_postgres"
    reads_inline: bool = False

    def __init__(self, url: str, *, connections: int = 10) -> None:
        self._url = url
        self._connections = Connections(self._connect, connections, patience_seconds=_CONNECT_SECONDS)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def fetch(self, sql: str, params: Params = NO_PARAMS) -> list[Row]:
        return await self._again_if_lost(lambda connection: PostgresTransaction(connection).fetch(sql, params))

    async def fetch_one(self, sql: str, params: Params = NO_PARAMS) -> Row | None:
        return await self._again_if_lost(lambda connection: PostgresTransaction(connection).fetch_one(sql, params))

    async def read(self, work: Work[T]) -> T:
        return await self._again_if_lost(lambda connection: _transact(connection, _SNAPSHOT, work))

    async def read_short(self, work: Work[T]) -> T:
        return await self.read(work)

    async def write(self, work: Work[T], *, owner: str | None = None) -> T:
        if owner is None:
            return await self._write("BEGIN", work)
        # those who would only wait for each other in the server do so here, and leave the connections to other owners
        async with self._turn(owner):
            return await self._write(f"BEGIN; SELECT pg_advisory_xact_lock({lock_number(owner)})", work)

    @asynccontextmanager
    async def _turn(self, owner: str) -> AsyncIterator[None]:
        """Bounded: else those behind one whose lock is held from outside would wait as often as they are many."""
        turn = self._turns.setdefault(owner, asyncio.Lock())
        try:
            async with asyncio.timeout(_LOCK_SECONDS):
                await turn.acquire()
        except TimeoutError as error:
            raise StorageUnavailable("other work of the same user takes too long") from error
        try:
            yield
        finally:
            turn.release()

    async def _write(self, begin: str, work: Work[T]) -> T:
        for tries_left in reversed(range(_TRIES)):
            try:
                return await self._on_connection(lambda connection: _transact(connection, begin, work))
            except StorageUnavailable as error:
                undone = isinstance(error, _NothingDone) or isinstance(error.__cause__, _RAN_INTO_ANOTHER)
                if not (undone and tries_left):
                    raise
        raise AssertionError("the last try returns or raises")

    async def scrub(self) -> None:
        """The server reuses the room of deleted rows in its own time, and keeps its log as long as it was told to."""

    async def close(self) -> None:
        await self._connections.close()

    async def _again_if_lost(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """A connection that has been idle may be found dead; what only reads is asked once more, on another one."""
        try:
            return await self._on_connection(work)
        except StorageUnavailable as error:
            if isinstance(error.__cause__, (*_LOST, *_RAN_INTO_ANOTHER)):
                return await self._on_connection(work)
            raise

    async def _on_connection(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        connection = await self._taken()
        try:
            return await work(connection)
        except _NothingDone:
            self._connections.forget_idle()
            raise
        except (asyncpg.PostgresError, *_CONNECTION_FAULTS) as error:
            if isinstance(error, _LOST) and _is_unavailable(error):
                connection.terminate()
                self._connections.forget_idle()
            raise _translated(error) from error
        finally:
            self._connections.give_back(connection)

    async def _taken(self) -> Connection:
        try:
            return await self._connections.take()
        except (asyncpg.PostgresError, *_CONNECTION_FAULTS) as error:
            raise _translated(error) from error

    async def _connect(self) -> Connection:
        try:
            return await asyncpg.connect(
                self._url,
                timeout=_CONNECT_SECONDS,
                command_timeout=_STATEMENT_SECONDS,
                statement_cache_size=_CACHED_STATEMENTS,
                server_settings=_SESSION,
            )
        except ValueError:  # whose words may quote a part of the password
            raise StorageUnavailable("the database's address cannot be read") from None


async def _transact(connection: Connection, begin: str, work: Work[T]) -> T:
    await _begin(connection, begin)
    try:
        result = await work(PostgresTransaction(connection))
        await _commit(connection)
    except BaseException:
        await _roll_back(connection)
        raise
    return result


async def _begin(connection: Connection, begin: str) -> None:
    try:
        await connection.execute(begin)
    except _LOST as error:
        raise _NothingDone("the database cannot serve this request now") from error
    except BaseException:  # mostly a cancellation while it waited for the owner's lock
        await _roll_back(connection)
        raise


async def _commit(connection: Connection) -> None:
    """After a failed statement the server takes a commit for the opposite."""
    if await connection.execute("COMMIT") != "COMMIT":
        raise DatabaseFault("a statement failed and the transaction's work went on; nothing was stored")


async def _roll_back(connection: Connection) -> None:
    """A connection that cannot go back is given up, which undoes its transaction."""
    if connection.is_closed():
        return
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            await connection.execute("ROLLBACK")
    except (asyncpg.PostgresError, *_CONNECTION_FAULTS):
        _log.warning("a database connection is given up", exc_info=True)
        connection.terminate()
