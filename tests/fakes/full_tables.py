"""A SQLite database of this version's schema with rows in every table, whatever tables there are."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

from memory_gateway.kit.clock import system_clock
from memory_gateway.storage.migrate import migrate_within
from memory_gateway.storage.sqlite import SqliteTransaction, connect, drive

Rows = dict[str, list[tuple[Any, ...]]]

_TABLES = (
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name <> 'schema_migrations'"
)
_VALUES: dict[str, Callable[[str, int], Any]] = {
    "TEXT": lambda column, number: f"{column}'s «{number}» 茶\n\t\\N",
    "INTEGER": lambda _, number: [number, 2**63 - 1 - number, -(2**63) + number][number % 3],
    "BIGINT": lambda _, number: [number, 2**63 - 1 - number, -(2**63) + number][number % 3],
    "TIMESTAMP": lambda _, number: f"2026-05-28T20:26:{number:05}Z",
    "BLOB": lambda _, number: bytes(range(256)) * 4 + number.to_bytes(4),
    "REAL": lambda _, number: number / 7,
}


def new_database(path: Path) -> apsw.Connection:
    """Open, with the schema and without rows."""
    connection = connect(path)
    drive(migrate_within(SqliteTransaction(connection), "migrations", system_clock))
    return connection


def fill(connection: apsw.Connection, rows: int) -> None:
    """So many rows a table; of every second one, all is null that may be. Every third is deleted again."""
    connection.execute("BEGIN")
    for name in tables(connection):
        columns = connection.execute('SELECT name, type, "notnull", pk FROM pragma_table_info(?)', (name,)).fetchall()
        places = ", ".join("?" for _ in columns)
        for number in range(1, rows + 1):
            values = [
                None if number % 2 and not notnull and not pk else _VALUES[str(kind)](str(column), number)
                for column, kind, notnull, pk in columns
            ]
            connection.execute(f"INSERT INTO {name} VALUES ({places})", values)
        connection.execute(
            f"DELETE FROM {name} WHERE {columns[0][0]} IN (SELECT {columns[0][0]} FROM {name} LIMIT ?)", (rows // 3,)
        )
    connection.execute("COMMIT")


def tables(connection: apsw.Connection) -> list[str]:
    return sorted(str(name) for (name,) in connection.execute(_TABLES))


def all_rows(connection: apsw.Connection) -> Rows:
    """Of every table, with the columns by name."""
    found: Rows = {}
    for name in tables(connection):
        names = [
            str(each) for (each,) in connection.execute("SELECT name FROM pragma_table_info(?) ORDER BY 1", (name,))
        ]
        found[name] = sorted(connection.execute(f"SELECT {', '.join(names)} FROM {name}").fetchall(), key=repr)
    return found
