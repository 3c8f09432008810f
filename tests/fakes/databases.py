"""A database for a test: SQLite in its folder, or with ``--database postgres`` one of its own on a server for all."""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit
from uuid import uuid4

import asyncpg

from memory_gateway.kit.clock import system_clock
from memory_gateway.storage.migrate import migrate
from memory_gateway.storage.postgres import PostgresDatabase
from memory_gateway.storage.sqlite import SqliteDatabase

SERVER_URL = "TEST_POSTGRES_URL"
"""In the environment where the tests run on PostgreSQL; set by `tests.fakes.postgres`."""

TEMPLATE = "with_schema"
EMPTIED = """
DO $$
DECLARE name TEXT;
BEGIN
  FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'schema_migrations' LOOP
    EXECUTE format('DELETE FROM %I', name);
  END LOOP;
  FOR name IN SELECT sequencename FROM pg_sequences WHERE schemaname = 'public' LOOP
    EXECUTE format('ALTER SEQUENCE %I RESTART', name);
  END LOOP;
END $$
"""
TABLES = "SELECT COUNT(*) FROM pg_tables WHERE schemaname = 'public'"

AnyDatabase = SqliteDatabase | PostgresDatabase


def on_postgres() -> bool:
    return SERVER_URL in os.environ


def open_test_database(path: Path) -> AnyDatabase:
    """The database of this path, without rows at first. The path is where SQLite keeps it, elsewhere but a name."""
    return BorrowedPostgres(os.environ[SERVER_URL], path) if on_postgres() else SqliteDatabase(path)


class BorrowedPostgres(PostgresDatabase):
    """Lent to a path at its first use, with the schema in it; emptied when the tests have come to another path."""

    _lent: ClassVar[dict[Path, str]] = {}
    _opened: ClassVar[Counter[Path]] = Counter()
    _free: ClassVar[list[str]] = []

    def __init__(self, server_url: str, path: Path) -> None:
        super().__init__(server_url, connections=8)
        self._server_url, self._path = server_url, path
        self._in_use = False
        self._borrowing = asyncio.Lock()

    async def _connect(self) -> Any:
        async with self._borrowing:
            if not self._in_use:
                name = self._lent.get(self._path) or await self._borrow()
                self._url = database_url(self._server_url, name)
                self._opened[self._path] += 1
                self._in_use = True
        return await super()._connect()

    async def _borrow(self) -> str:
        for path in [path for path in self._lent if not self._opened[path]]:
            name = self._lent.pop(path)
            tables = await on_server(database_url(self._server_url, name), EMPTIED, TABLES)
            if tables == await on_server(database_url(self._server_url, TEMPLATE), TABLES):  # a test may drop some
                self._free.append(name)
        if self._free:
            name = self._free.pop()
        else:
            name = f"test_{uuid4().hex}"
            await on_server(self._server_url, f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
        self._lent[self._path] = name
        return name

    async def close(self) -> None:
        await super().close()
        if self._in_use:
            self._in_use = False
            self._opened[self._path] -= 1


async def make_template(server_url: str) -> None:
    """The database that all others are copies of: the schema takes longer to make than to copy."""
    await on_server(server_url, f"CREATE DATABASE {TEMPLATE}")
    database = PostgresDatabase(database_url(server_url, TEMPLATE))
    await migrate(database, system_clock)
    await database.close()


async def tables(database: AnyDatabase, *prefixes: str) -> list[str]:
    """The names of its tables that begin so."""
    catalogue = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
    if isinstance(database, SqliteDatabase):
        catalogue = "SELECT name FROM sqlite_master WHERE type = 'table'"
    return sorted(name for (name,) in await database.fetch(catalogue) if name.startswith(prefixes))


def database_url(server_url: str, name: str) -> str:
    return urlsplit(server_url)._replace(path=f"/{name}").geturl()


@asynccontextmanager
async def copied_database(server_url: str, template: str) -> AsyncIterator[str]:
    """The address of a copy, dropped at the end. Nobody may be connected to the template."""
    name = f"copy_{uuid4().hex}"
    await on_server(server_url, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
    try:
        yield database_url(server_url, name)
    finally:
        await on_server(server_url, f"DROP DATABASE {name} WITH (FORCE)")


async def on_server(url: str, *statements: str) -> Any:
    """Run them one after the other; the first value of the last."""
    connection = await asyncpg.connect(url)
    try:
        return [await connection.fetchval(statement) for statement in statements][-1]
    finally:
        await connection.close()
