"""Numbered migrations: plain SQL files, run once each, in order, in one transaction.

SQLite's are in ``migrations``, PostgreSQL's in ``migrations_postgres``: these begin with number 13, the whole schema as
SQLite has it after its thirteenth.
"""

import re
from collections.abc import Iterator
from importlib.resources import files
from typing import NamedTuple

from memory_gateway.kit.clock import Clock, rfc3339
from memory_gateway.storage.port import Database, Transaction

_FILE_NAME = re.compile(r"(\d{4})_([a-z_]+)\.sql")

CREATE_LEDGER = """
CREATE TABLE IF NOT EXISTS schema_migrations (
  number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL
)
"""
APPLIED = "SELECT number FROM schema_migrations"
OWNER = "schema"
RECORD = "INSERT INTO schema_migrations (number, name, applied_at) VALUES (:number, :name, :applied_at)"


class Migration(NamedTuple):
    """One file of a folder of migrations."""

    number: int
    name: str
    statements: tuple[str, ...]


class UnknownMigration(Exception):
    """The database was written by a newer version of the program."""


def migrations(folder: str = "migrations") -> list[Migration]:
    """All migrations that ship with this version, in order."""
    return sorted(_read_files(folder))


def _read_files(folder: str) -> Iterator[Migration]:
    for entry in files(f"memory_gateway.storage.{folder}").iterdir():
        match = _FILE_NAME.fullmatch(entry.name)
        if match:
            statements = (part.strip() for part in entry.read_text("utf-8").split(";\n"))
            yield Migration(int(match[1]), match[2], tuple(part for part in statements if part))


async def migrate(database: Database, clock: Clock) -> list[Migration]:
    """Bring the schema up to this version; the migrations that were run. Safe to call from several processes."""

    async def run(transaction: Transaction) -> list[Migration]:
        return await migrate_within(transaction, database.migrations, clock)

    return await database.write(run, owner=OWNER)


async def migrate_within(transaction: Transaction, folder: str, clock: Clock) -> list[Migration]:
    """As `migrate`, as a part of a transaction in which nobody else migrates."""
    await transaction.execute(CREATE_LEDGER)
    applied = {number for (number,) in await transaction.fetch(APPLIED)}
    shipped = migrations(folder)
    if unknown := applied - {migration.number for migration in shipped}:
        raise UnknownMigration(f"the database has migrations this version does not know: {sorted(unknown)}")
    missing = [migration for migration in shipped if migration.number not in applied]
    for migration in missing:
        for statement in migration.statements:
            await transaction.execute(statement)
        await transaction.execute(
            RECORD, {"number": migration.number, "name": migration.name, "applied_at": rfc3339(clock())}
        )
    return missing
