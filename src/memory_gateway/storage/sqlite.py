"""SQLite through apsw: one writer thread that commits waiting transactions in groups, reader threads, inline reads."""

import asyncio
import contextlib
import contextvars
import logging
import queue
import threading
import time
from collections.abc import Awaitable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import apsw

from memory_gateway.kit.errors import StorageUnavailable
from memory_gateway.kit.ids import shard_key
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

_GROUP_LIMIT = 256
_BUSY_TIMEOUT_MS = 30_000
_MOST_REWRITTEN_BYTES = 1 << 30  # a few seconds in which others' writes wait
_SCRUB_TRIES = 20
_SCRUB_BUSY_MS = 250
_TAKEN_KEY = {apsw.SQLITE_CONSTRAINT_UNIQUE, apsw.SQLITE_CONSTRAINT_PRIMARYKEY, apsw.SQLITE_CONSTRAINT_ROWID}
_UNAVAILABLE = (
    apsw.BusyError,
    apsw.LockedError,
    apsw.FullError,
    apsw.IOError,
    apsw.CantOpenError,
    apsw.ReadOnlyError,
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.NoMemError,
    apsw.PermissionsError,
    apsw.ConnectionClosedError,
)


def connect(path: Path, *, alone: bool = False) -> apsw.Connection:
    """A connection with the product's pragmas; ``alone`` for one that shares the file with nobody, or is busy at once.

    WAL; a commit is on the disk before it returns; what is deleted is overwritten, at no cost that could be measured.
    """
    connection = apsw.Connection(str(path))
    if alone:
        connection.execute("PRAGMA locking_mode = exclusive").fetchall()
    connection.set_busy_timeout(0 if alone else _BUSY_TIMEOUT_MS)
    # else a join is planned anew whenever a parameter changes, which takes ten times as long as a read by key
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    connection.execute(
        "PRAGMA journal_mode = wal; PRAGMA synchronous = full; PRAGMA temp_store = memory; PRAGMA secure_delete = on; "
        "PRAGMA journal_size_limit = 67108864"
    ).fetchall()  # the statements behind one that gives a row are run when the row is fetched
    connection.create_scalar_function("shard_key", lambda *names: shard_key(str(names[0])), 1)  # for migrations
    return connection


def drive(work: Awaitable[T]) -> T:
    """Run a coroutine whose awaits never suspend, here and now."""
    coroutine = cast("Coroutine[Any, None, T]", work)
    try:
        coroutine.send(None)
    except StopIteration as finished:
        return cast("T", finished.value)
    coroutine.close()
    raise RuntimeError("a transaction's work may await nothing but its transaction")


def translated(error: apsw.Error) -> Exception:
    """The driver's exception in the words of the port, and itself as the cause."""
    fault = _fault(error)
    fault.__cause__ = error
    return fault


def _fault(error: apsw.Error) -> Exception:
    if getattr(error, "extendedresult", None) in _TAKEN_KEY:  # an attribute that the driver's stubs do not know
        return UniqueViolation(str(error))
    if isinstance(error, _UNAVAILABLE):
        return StorageUnavailable("the database cannot serve this request now")
    return DatabaseFault(str(error))


class SqliteTransaction(Transaction):
    """Statements on one connection; the caller begins and ends the transaction."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    async def execute(self, sql: str, params: Params = NO_PARAMS) -> int:
        self._connection.execute(sql, params)
        return self._connection.changes()

    async def execute_many(self, sql: str, params: Iterable[Params]) -> None:
        self._connection.executemany(sql, params)

    async def fetch(self, sql: str, params: Params = NO_PARAMS) -> list[Row]:
        return self._connection.execute(sql, params).fetchall()

    async def fetch_one(self, sql: str, params: Params = NO_PARAMS) -> Row | None:
        return cast("Row | None", self._connection.execute(sql, params).fetchone())


@dataclass(slots=True)
class _Job(Generic[T]):
    """One write transaction that somebody waits for."""

    work: Work[T]
    loop: asyncio.AbstractEventLoop
    waiter: asyncio.Future[T]
    context: contextvars.Context = field(default_factory=contextvars.copy_context)
    result: T | None = None
    error: BaseException | None = None

    def settle(self) -> None:
        if self.waiter.done():
            return
        if self.error is not None:
            self.waiter.set_exception(self.error)
        else:
            self.waiter.set_result(cast("T", self.result))


class _Writer(threading.Thread):
    """Takes one waiting job, then all that wait with it, and commits them with one fsync.

    Nothing ends the thread but `stop`: whatever a group meets, its jobs are settled and the next group is taken.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(name="sqlite-writer", daemon=True)
        self._path = path
        self._connection: apsw.Connection | None = connect(path)
        self._jobs: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._stopping = False
        self.commits = 0
        self.jobs = 0

    def submit(self, job: _Job[Any]) -> None:
        self._jobs.put(job)

    def stop(self) -> None:
        self._jobs.put(None)

    def run(self) -> None:
        while not self._stopping:
            group = self._take()
            if group:
                self._run_group(group)
                _settle(group)
        if self._connection is not None:
            self._connection.close()

    def _take(self) -> list[_Job[Any]]:
        group: list[_Job[Any]] = []
        job = self._jobs.get()
        while job is not None:
            group.append(job)
            if len(group) == _GROUP_LIMIT:
                return group
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return group
        self._stopping = True
        return group

    def _run_group(self, group: list[_Job[Any]]) -> None:
        try:
            connection = self._opened()
            connection.execute("BEGIN IMMEDIATE")
            for job in group:
                _run_job(connection, job)
            connection.execute("COMMIT")
        except BaseException as error:  # noqa: BLE001 - nobody above would hear of it, and all later writes would hang
            fault = translated(error) if isinstance(error, apsw.Error) else _unforeseen(error)
            for job in group:
                job.error = job.error or fault
            self._roll_back()
        self.commits += 1
        self.jobs += len(group)

    def _opened(self) -> apsw.Connection:
        if self._connection is None:
            self._connection = connect(self._path)
        return self._connection

    def _roll_back(self) -> None:
        """A connection that cannot go back is given up, which undoes its transaction; the next group opens another."""
        connection = self._connection
        if connection is None:
            return
        try:
            if not connection.get_autocommit():
                connection.execute("ROLLBACK")
        except Exception:  # noqa: BLE001 - as above
            _log.exception("the database connection is given up")
            self._connection = None
            connection.close(True)


def _run_job(connection: apsw.Connection, job: _Job[Any]) -> None:
    connection.execute("SAVEPOINT job")
    try:
        job.result = job.context.run(drive, job.work(SqliteTransaction(connection)))
    except Exception as error:
        job.error = translated(error) if isinstance(error, apsw.Error) else error
        if connection.get_autocommit():
            raise apsw.IOError("the transaction of the whole group was rolled back") from error
        connection.execute("ROLLBACK TO job")
    connection.execute("RELEASE job")


def _on_snapshot(connection: apsw.Connection, work: Work[T]) -> T:
    try:
        connection.execute("BEGIN")
        try:
            return drive(work(SqliteTransaction(connection)))
        finally:
            if not connection.get_autocommit():
                connection.execute("ROLLBACK")
    except apsw.Error as error:
        raise translated(error) from error


def _unforeseen(error: BaseException) -> StorageUnavailable:
    _log.error("a group of write transactions failed", exc_info=error)
    return StorageUnavailable("the database cannot serve this request now")


def _settle(group: list[_Job[Any]]) -> None:
    """Wake the waiters, one call for each event loop."""
    loops = {job.loop for job in group}
    for loop in loops:
        own = [job for job in group if job.loop is loop]
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits there any more
            loop.call_soon_threadsafe(_settle_all, own)


def _settle_all(group: list[_Job[Any]]) -> None:
    for job in group:
        job.settle()


class SqliteDatabase:
    """The `Database` port on one SQLite file, which several processes may open at once.

    What cannot be opened raises as `Database` says.
    """

    kind: DatabaseKind = "sqlite"
    migrations: str = "migrations"
    reads_inline: bool = True

    def __init__(self, path: Path, *, readers: int = 2) -> None:
        self._path = path
        try:
            self._writer = _Writer(path)
            self._inline = connect(path)
        except apsw.Error as error:
            raise translated(error) from error
        self._local = threading.local()
        self._reader_connections: list[apsw.Connection] = []
        self._readers = ThreadPoolExecutor(readers, thread_name_prefix="sqlite-reader")
        self._closed = False
        self._writer.start()

    @property
    def commits(self) -> int:
        """How many groups were committed."""
        return self._writer.commits

    @property
    def transactions(self) -> int:
        """How many write transactions were in those groups."""
        return self._writer.jobs

    async def fetch(self, sql: str, params: Params = NO_PARAMS) -> list[Row]:
        try:
            return self._inline.execute(sql, params).fetchall()
        except apsw.Error as error:
            raise translated(error) from error

    async def fetch_one(self, sql: str, params: Params = NO_PARAMS) -> Row | None:
        # fetchall, not fetchone: an unfinished statement would hold an old snapshot open
        rows = await self.fetch(sql, params)
        return rows[0] if rows else None

    async def read(self, work: Work[T]) -> T:
        if self._closed:
            raise StorageUnavailable("the database is closed")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, self._read, work)

    async def read_short(self, work: Work[T]) -> T:
        if self._closed:
            raise StorageUnavailable("the database is closed")
        return _on_snapshot(self._inline, work)

    async def write(self, work: Work[T], *, owner: str | None = None) -> T:  # noqa: ARG002  # one writes at a time
        if self._closed:
            raise StorageUnavailable("the database is closed")
        loop = asyncio.get_running_loop()
        job: _Job[T] = _Job(work, loop, loop.create_future())
        self._writer.submit(job)
        return await job.waiter

    async def scrub(self) -> None:
        await asyncio.to_thread(self._scrub)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._writer.stop()
        await asyncio.to_thread(self._writer.join)
        self._readers.shutdown(wait=True)
        for connection in (*self._reader_connections, self._inline):
            connection.close()

    def _scrub(self) -> None:
        """Deleted rows were overwritten where they lay, but a page that was ever split may hold copies of its old rows.

        So the file is written anew, unless it is so large that others would wait too long, and then the log is emptied.
        Whoever reads an older state holds the log back, and a try at it holds writers back: so short tries, and many.
        """
        try:
            with contextlib.closing(connect(self._path)) as connection:
                if self._path.stat().st_size <= _MOST_REWRITTEN_BYTES:
                    connection.execute("PRAGMA temp_store = file")  # the new file need not fit into memory
                    connection.execute("VACUUM")
                else:
                    _log.warning("the database is too large to be written anew: old copies of erased rows may stay")
                connection.set_busy_timeout(_SCRUB_BUSY_MS)
                for _ in range(_SCRUB_TRIES):
                    if connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0] == 0:
                        return
                    time.sleep(_SCRUB_BUSY_MS / 1000)
        except apsw.Error as error:
            raise translated(error) from error
        raise StorageUnavailable("what was deleted is still being read; its traces are removed later")

    def _read(self, work: Work[T]) -> T:
        return _on_snapshot(self._reader_connection(), work)

    def _reader_connection(self) -> apsw.Connection:
        connection: apsw.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = connect(self._path)
            connection.execute("PRAGMA query_only = on")
            self._local.connection = connection
            self._reader_connections.append(connection)
        return connection
