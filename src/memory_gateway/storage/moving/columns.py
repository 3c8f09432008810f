"""SQLite keeps in a column whatever it was given; PostgreSQL keeps what was declared."""

from collections.abc import Callable
from typing import Any, NamedTuple

from memory_gateway.storage.port import Row

_LARGEST_EXACT = 2**53
_WHOLE = frozenset("0123456789")


class MoveRefused(Exception):
    """Why nothing, or nothing more, is moved: one line for a person."""


class Table(NamedTuple):
    """A table of the source: its columns that are written to.

    ``order`` names what its rows are read by, ``keys`` what a person finds one by.
    """

    name: str
    columns: tuple[str, ...]
    keys: tuple[str, ...]
    order: tuple[str, ...]


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        value = value.decode()
    elif isinstance(value, int):
        value = str(value)
    if not isinstance(value, str) or "\0" in value:
        raise ValueError(value)
    return value


def _integer(value: Any) -> int:
    if isinstance(value, float) and value.is_integer() and abs(value) <= _LARGEST_EXACT:
        return int(value)
    if isinstance(value, str) and value and _WHOLE.issuperset(value.removeprefix("-")):
        return int(value)
    if not isinstance(value, int):
        raise ValueError(value)  # noqa: TRY004 - like every value that does not fit
    return value


def _bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if not isinstance(value, bytes):
        raise ValueError(value)  # noqa: TRY004 - as above
    return value


def _double(value: Any) -> float:
    if not isinstance(value, int | float):
        raise ValueError(value)  # noqa: TRY004 - as above
    return float(value)


_TYPES: dict[str, Callable[[Any], Any]] = {
    "text": _text,
    "bigint": _integer,
    "bytea": _bytes,
    "double precision": _double,
}


class Converter:
    """Rows of one table as the target's columns take them."""

    def __init__(self, table: Table, types: dict[str, str]) -> None:
        """``types`` are the target's, by column. `MoveRefused` where the two tables are not alike."""
        if different := types.keys() ^ set(table.columns):
            raise MoveRefused(f"table {table.name}: only one of the databases has the column {min(different)}")
        if unknown := sorted(set(types.values()) - _TYPES.keys()):
            raise MoveRefused(f"table {table.name}: nothing can be moved into the type {unknown[0]}")
        self._table = table
        self._types = [types[column] for column in table.columns]
        self._fit = [_TYPES[name] for name in self._types]

    def converted(self, row: Row) -> Row:
        """`MoveRefused` names the table, the row and the column of a value that does not fit, never the value."""
        try:
            return tuple(
                [None if value is None else fit(value) for fit, value in zip(self._fit, row, strict=True)]
            )  # a list first: a generator takes twice as long
        except (ValueError, OverflowError):
            raise MoveRefused(self._complaint(row)) from None

    def _complaint(self, row: Row) -> str:
        for column, kind, fit, value in zip(self._table.columns, self._types, self._fit, row, strict=True):
            try:
                _ = None if value is None else fit(value)
            except (ValueError, OverflowError):
                return f"table {self._table.name}, row {self._named(row)}: {column} is not {kind}"
        raise AssertionError("the row fits")

    def _named(self, row: Row) -> str:
        values = dict(zip(self._table.columns, row, strict=True))
        return ", ".join(f"{key} = {values[key]!r}" for key in self._table.keys)
