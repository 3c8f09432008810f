"""What the rooms above know of a database: transactions, reads, and nothing of the driver.

SQL is one portable dialect with ``:named`` parameters. Work that needs more than one statement is a coroutine
function over a `Transaction`; it may await nothing but that transaction, because SQLite runs it on a thread.
It may be run again after a fault, so it must not change anything outside.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Literal, Protocol, TypeVar

Params = Mapping[str, Any]
Row = tuple[Any, ...]
T = TypeVar("T")

DatabaseKind = Literal["sqlite", "postgresql"]

NO_PARAMS: Params = {}


class DatabaseFault(Exception):
    """The database refused a statement, which is a fault of the program; its words are for the log only."""


class UniqueViolation(DatabaseFault):
    """A row with the same key exists already."""


class Reads(Protocol):
    """What a transaction can do and, for short reads, the database itself."""

    async def fetch(self, sql: str, params: Params = NO_PARAMS) -> list[Row]: ...

    async def fetch_one(self, sql: str, params: Params = NO_PARAMS) -> Row | None: ...


class Transaction(Reads, Protocol):
    """One transaction: everything in it is seen together or not at all."""

    async def execute(self, sql: str, params: Params = NO_PARAMS) -> int:
        """Run one statement; the number of rows it changed."""
        ...

    async def execute_many(self, sql: str, params: Iterable[Params]) -> None:
        """Run one statement for each set of parameters."""
        ...


Work = Callable[[Transaction], Awaitable[T]]


class Database(Protocol):
    """A database shared by all rooms and, through its file or server, by all processes.

    ``migrations`` names the folder of its schema, see `memory_gateway.storage.migrate`.
    Faults: `UniqueViolation` for a taken key, `memory_gateway.kit.errors.StorageUnavailable` when the disk or
    the server cannot serve (nothing of the failed transaction is stored, or all of it where a server's connection was
    lost with the commit), `DatabaseFault` for whatever else the driver
    says.
    """

    kind: DatabaseKind
    migrations: str
    reads_inline: bool
    """Whether `fetch` and `read_short` run on the event loop, so that it pays to know what is short."""

    async def fetch(self, sql: str, params: Params = NO_PARAMS) -> list[Row]:
        """One short read by key. On SQLite it runs on the event loop: touch few rows."""
        ...

    async def fetch_one(self, sql: str, params: Params = NO_PARAMS) -> Row | None:
        """As `fetch`, the first row or None."""
        ...

    async def read(self, work: Work[T]) -> T:
        """Run reads, however long, on one snapshot, off the event loop."""
        ...

    async def read_short(self, work: Work[T]) -> T:
        """As `read`, of a few milliseconds. On SQLite it runs on the event loop, which spares two changes of thread."""
        ...

    async def write(self, work: Work[T], *, owner: str | None = None) -> T:
        """Run one write transaction; it is on the disk when this returns.

        Work that decides by what it reads names an ``owner``, mostly a user: no other work of that owner runs
        meanwhile. Without one, each statement must be right by itself whatever others do in between.
        """
        ...

    async def scrub(self) -> None:
        """What was deleted is gone from the disk when this returns, as far as that is in this program's hands.

        `StorageUnavailable` where others hold it back. A PostgreSQL server keeps its own time and its own log.
        """
        ...

    async def close(self) -> None:
        """Finish what was accepted, then let go of the database. Calling it twice is fine."""
        ...
