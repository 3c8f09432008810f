"""The PostgreSQL that takes the rows, each batch together with a note that it is there."""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NamedTuple

import asyncpg

from memory_gateway.kit.clock import Clock
from memory_gateway.storage.migrate import OWNER, UnknownMigration, migrate_within
from memory_gateway.storage.moving.columns import MoveRefused, Table
from memory_gateway.storage.moving.source import quoted
from memory_gateway.storage.port import DatabaseFault, Row
from memory_gateway.storage.postgres import PostgresDatabase, PostgresTransaction, lock_number

_CONNECT_SECONDS = 10.0
_SESSION = {"application_name": "memory-gateway migrate", "lock_timeout": "30s", "jit": "off"}
_LEFT_BY_SERVERS = ("leases", "token_buckets")  # of their own work, which is over: none runs now

# the driver's own errors: it may be in the middle of a batch
_LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    ConnectionError,
)
_SERVERS = """
SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'memory-gateway'
"""
_LOCK = f"SELECT pg_advisory_lock({lock_number('move')})"
_CREATE = (
    """
CREATE TABLE IF NOT EXISTS sqlite_move (
  one_row BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (one_row),
  source TEXT NOT NULL,
  begun_at TEXT NOT NULL,
  finished_at TEXT
)
""",
    """
CREATE TABLE IF NOT EXISTS sqlite_move_batches (
  table_name TEXT NOT NULL,
  batch_no BIGINT NOT NULL,
  row_count BIGINT NOT NULL,
  digest BYTEA NOT NULL,
  PRIMARY KEY (table_name, batch_no)
)
""",
)
_BEGUN = "SELECT source, begun_at, finished_at FROM sqlite_move"
_BEGIN = "INSERT INTO sqlite_move (source, begun_at) VALUES ($1, $2)"
_FINISH = "UPDATE sqlite_move SET finished_at = $1"
_DIGESTS = "SELECT digest FROM sqlite_move_batches WHERE table_name = $1 ORDER BY batch_no"
_NOTE = "INSERT INTO sqlite_move_batches (table_name, batch_no, row_count, digest) VALUES ($1, $2, $3, $4)"
_MOVED = "SELECT table_name, SUM(row_count)::BIGINT FROM sqlite_move_batches GROUP BY table_name"
_COLUMNS = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_attribute a
WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND a.attgenerated = '' AND NOT a.attisdropped
"""
_NUMBERED = """
SELECT c.relname, a.attname, pg_get_serial_sequence(quote_ident(c.relname), a.attname)
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
WHERE a.attidentity <> '' AND c.relkind IN ('r', 'p') AND c.relnamespace = current_schema()::regnamespace
"""


class Begun(NamedTuple):
    """A move into this database, perhaps of an earlier run."""

    source: str
    begun_at: str
    finished_at: str | None


class Target:
    """One connection, which alone moves into this database."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def types(self, table: Table) -> dict[str, str]:
        """Of each column that is written to; `MoveRefused` where there is no such table."""
        rows = await self._connection.fetch(_COLUMNS, quoted(table.name))
        if not rows:
            raise MoveRefused(f"the schema of database_url has no table {table.name}")
        return {str(name): str(kind) for name, kind in rows}

    async def begin(self, source: str, tables: Sequence[Table], now: str) -> Begun:
        """The move that is on its way here; else a new one, which only an empty database takes."""
        async with self._connection.transaction():
            for statement in _CREATE:
                await self._connection.execute(statement)
            if begun := await self._connection.fetchrow(_BEGUN):
                return Begun(*begun)
            for name in _LEFT_BY_SERVERS:
                await self._connection.execute(f"DELETE FROM {name}")  # noqa: S608 - a constant
            for table in tables:
                if await self._connection.fetchval(f"SELECT EXISTS (SELECT FROM {quoted(table.name)})"):  # noqa: S608 - the schema's names
                    raise MoveRefused(f"database_url already holds data (in {table.name}); name an empty database")
            await self._connection.execute(_BEGIN, source, now)
            return Begun(source, now, None)

    async def digests(self, table: Table) -> list[bytes]:
        """Of the batches that are here, in order."""
        return [digest for (digest,) in await self._connection.fetch(_DIGESTS, table.name)]

    async def copy(self, table: Table, batch_no: int, rows: Sequence[Row], digest: bytes) -> None:
        """Both or nothing: the rows, and the note that they are here."""
        async with self._connection.transaction():
            await self._connection.copy_records_to_table(table.name, records=rows, columns=table.columns)
            await self._connection.execute(_NOTE, table.name, batch_no, len(rows), digest)

    async def moved(self) -> dict[str, int]:
        """How many rows of each table came with the move."""
        return {str(name): int(count) for name, count in await self._connection.fetch(_MOVED)}

    async def count(self, tables: Iterable[Table]) -> dict[str, int]:
        """How many rows each table has now."""
        return {
            table.name: await self._connection.fetchval(f"SELECT COUNT(*) FROM {quoted(table.name)}")  # noqa: S608 - as above
            for table in tables
        }

    async def go_on_after(self, numbers: dict[str, int]) -> None:
        """No number is given twice: those that are made here come after all that were given there."""
        for table, column, sequence in await self._connection.fetch(_NUMBERED):
            highest = await self._connection.fetchval(f"SELECT MAX({quoted(column)}) FROM {quoted(table)}")  # noqa: S608 - as above
            last = max(numbers.get(table, 0), highest or 0)
            if last:
                await self._connection.execute("SELECT setval($1::text::regclass, $2)", sequence, last)

    async def finish(self, tables: Iterable[Table], now: str) -> None:
        """The planner learns what there is now, and a later run that there is nothing to do."""
        for table in tables:
            await self._connection.execute(f"ANALYZE {quoted(table.name)}")
        await self._connection.execute(_FINISH, now)


@asynccontextmanager
async def open_target(url: str, clock: Clock) -> AsyncIterator[Target]:
    """Its schema brought up to this version, and nobody else at work on it. `MoveRefused` where that cannot be."""
    with _faults():
        connection = await _connect(url)
        try:
            if await connection.fetchval(_SERVERS):
                raise MoveRefused("a server is running on database_url; stop it until everything is moved")
            await connection.execute(_LOCK)
            async with connection.transaction():
                await connection.execute(f"SELECT pg_advisory_xact_lock({lock_number(OWNER)})")
                await migrate_within(PostgresTransaction(connection), PostgresDatabase.migrations, clock)
            yield Target(connection)
        finally:
            await connection.close(timeout=_CONNECT_SECONDS)


async def _connect(url: str) -> Any:
    try:
        return await asyncpg.connect(url, timeout=_CONNECT_SECONDS, server_settings=_SESSION)
    except ValueError:
        # its own words may hold parts of the password
        raise MoveRefused("database_url cannot be read; it is postgresql://user:password@host:port/database") from None
    except TimeoutError:
        raise MoveRefused("database_url: the server does not answer") from None
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
        raise _refused(error) from error


@contextmanager
def _faults() -> Iterator[None]:
    try:
        yield
    except asyncpg.LockNotAvailableError:
        raise MoveRefused("database_url: somebody else is moving into this database, or has a table locked") from None
    except _LOST as error:
        raise MoveRefused(
            "database_url: the connection was lost; run the command again, it goes on from here"
        ) from error
    except (asyncpg.PostgresError, UnknownMigration, DatabaseFault) as error:
        raise _refused(error) from error


def _refused(error: Exception) -> MoveRefused:
    return MoveRefused(f"database_url: {' '.join(str(error).split())}")
