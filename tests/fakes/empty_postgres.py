"""Databases without anything in them, on a PostgreSQL server of the tests' own."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import asyncpg

from tests.fakes.databases import database_url, on_server
from tests.fakes.full_tables import Rows
from tests.fakes.postgres import running_server

_TABLES = """
SELECT tablename FROM pg_tables
WHERE schemaname = 'public' AND tablename <> 'schema_migrations' AND tablename NOT LIKE 'sqlite_move%' ORDER BY 1
"""
_COLUMNS = """
SELECT attname FROM pg_attribute
WHERE attrelid = $1::text::regclass AND attnum > 0 AND attgenerated = '' ORDER BY attname COLLATE "C"
"""


class EmptyPostgres:
    """Makes one after the other."""

    def __init__(self, server_url: str) -> None:
        self._server_url = server_url

    def new(self) -> str:
        """The URL of a database that nobody has used."""
        name = f"empty_{uuid4().hex}"
        asyncio.run(on_server(self._server_url, f"CREATE DATABASE {name}"))
        return database_url(self._server_url, name)


@contextmanager
def empty_postgres() -> Iterator[EmptyPostgres]:
    with running_server() as server:
        yield EmptyPostgres(server.get_uri())


def query(url: str, *statements: str) -> Any:
    """Run them; the first value of the last."""
    return asyncio.run(on_server(url, *statements))


def all_rows_of(url: str) -> Rows:
    """As `tests.fakes.full_tables.all_rows` gives them."""
    return asyncio.run(_all_rows(url))


async def _all_rows(url: str) -> Rows:
    connection = await asyncpg.connect(url)
    try:
        found: Rows = {}
        for (name,) in await connection.fetch(_TABLES):
            columns = ", ".join(each for (each,) in await connection.fetch(_COLUMNS, name))
            found[name] = sorted(map(tuple, await connection.fetch(f"SELECT {columns} FROM {name}")), key=repr)
        return found
    finally:
        await connection.close()
