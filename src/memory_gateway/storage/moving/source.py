"""A data folder's SQLite file, which nobody else reads or writes while it is moved."""

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path

import apsw

from memory_gateway.kit.clock import Clock
from memory_gateway.storage.migrate import UnknownMigration, migrate_within
from memory_gateway.storage.moving.columns import MoveRefused, Table
from memory_gateway.storage.port import Row
from memory_gateway.storage.sqlite import SqliteDatabase, SqliteTransaction, connect, drive

BATCH_BYTES = 4 << 20
"""What one transaction of the target takes; the same in every run, since a run skips what an earlier one moved."""

_VALUE_BYTES = 8  # of a number, or of what stands around a text
_LEDGER = "schema_migrations"
_TABLES = """
SELECT name, wr FROM pragma_table_list
WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name <> ? ORDER BY name
"""
_COLUMNS = "SELECT name, pk FROM pragma_table_info(?)"
_HAS_NUMBERS = "SELECT 1 FROM sqlite_master WHERE name = 'sqlite_sequence'"
_NUMBERS = "SELECT name, seq FROM sqlite_sequence"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class Source:
    """The rows of every table, and which numbers were ever given."""

    def __init__(self, path: Path, connection: apsw.Connection) -> None:
        self.path = path
        self._connection = connection
        self.tables = [
            self._table(name, has_rowid=not without_rowid) for name, without_rowid in self._fetched(_TABLES, _LEDGER)
        ]
        self.counts = {table.name: self._count(table) for table in self.tables}

    def batches(self, table: Table) -> Iterator[list[Row]]:
        """All rows, some mebibytes at a time; cut at the same rows whenever the rows are the same."""
        columns, order = (", ".join(map(quoted, names)) for names in (table.columns, table.order))
        batch: list[Row] = []
        size = 0
        for row in self._rows(table, f"SELECT {columns} FROM {quoted(table.name)} ORDER BY {order}"):  # noqa: S608 - the schema's names
            batch.append(row)
            size += _size(row)
            if size >= BATCH_BYTES:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    def numbers(self) -> dict[str, int]:
        """By table, the highest number that was ever given to a row, also to one that is gone."""
        return dict(self._fetched(_NUMBERS)) if self._fetched(_HAS_NUMBERS) else {}

    def _rows(self, table: Table, sql: str) -> Iterator[Row]:
        place = 0
        try:
            for row in self._connection.execute(sql):
                place += 1
                yield row
        except UnicodeDecodeError:
            raise MoveRefused(f"table {table.name}, row {place + 1} of those in order: a text is not UTF-8") from None
        except apsw.Error as error:
            raise _unusable(self.path, error) from error

    def _table(self, name: str, *, has_rowid: bool) -> Table:
        found = self._fetched(_COLUMNS, name)
        keys = tuple(column for column, place in sorted(found, key=itemgetter(1)) if place)
        return Table(name, tuple(column for column, _ in found), keys, ("rowid",) if has_rowid else keys)

    def _count(self, table: Table) -> int:
        [(count,)] = self._fetched(f"SELECT COUNT(*) FROM {quoted(table.name)}")  # noqa: S608 - the schema's names
        return int(count)

    def _fetched(self, sql: str, *params: str) -> list[Row]:
        return self._connection.execute(sql, params).fetchall()


@contextmanager
def open_source(path: Path, clock: Clock) -> Iterator[Source]:
    """Locked against everybody, its schema brought up to this version. `MoveRefused` where that cannot be."""
    if not path.is_file():
        raise MoveRefused(f"there is no database {path}; name the folder with --data-dir")
    with contextlib.ExitStack() as stack:
        try:
            connection = connect(path, alone=True)
            stack.callback(connection.close)
            connection.execute("BEGIN EXCLUSIVE")  # the lock stays when this ends
            drive(migrate_within(SqliteTransaction(connection), SqliteDatabase.migrations, clock))
            connection.execute("COMMIT")
            source = Source(path, connection)
        except apsw.BusyError:
            raise MoveRefused(f"{path} is in use; stop the server that has it, and whatever else reads it") from None
        except UnknownMigration as error:
            raise MoveRefused(f"{path}: {error}") from error
        except apsw.Error as error:
            raise _unusable(path, error) from error
        yield source


def _unusable(path: Path, error: apsw.Error) -> MoveRefused:
    return MoveRefused(f"the database {path} cannot be used: {error}")


def _size(row: Row) -> int:
    return sum([len(value) if isinstance(value, str | bytes) else 0 for value in row]) + _VALUE_BYTES * len(row)
