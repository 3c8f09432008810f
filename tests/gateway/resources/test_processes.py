"""Crashes at every point of an upload, restarts, and several processes on one store."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from memory_gateway.gateway.attachments.intents import LEASE_MS, FileIntents
from memory_gateway.gateway.resources import incoming, indexing, tries
from memory_gateway.gateway.resources.indexing import Indexer
from memory_gateway.gateway.resources.schemas import UploadFields, UploadReply
from memory_gateway.gateway.resources.sending import Sender
from memory_gateway.kit.errors import (
    MemoryGatewayError,
    PayloadTooLarge,
    StorageUnavailable,
    UpstreamRefused,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from memory_gateway.kit.files import NewFile
from memory_gateway.storage.leases import Leases
from memory_gateway.storage.sqlite import SqliteDatabase
from tests.fakes.front_door import FrontDoor
from tests.fakes.process import MAX_UPLOAD_BYTES, Process
from tests.fakes.upstream import RecordingUpstream
from tests.gateway.resources.conftest import StartProcess

SMALL = b"The code of the stand-in host is 4471.\n"
BIG = b"All work and no play. " * 100
TABLES = ("user_resources", "memory_attachments", "file_intents")


class Crash(BaseException):
    """The process is gone: nothing that it would have done comes to pass."""


async def crash(*_: object, **__: object) -> None:
    raise Crash


async def upload(process: Process, content: bytes = SMALL, user_id: str = "ann") -> UploadReply:
    async with process.resources.receive(user_id, "notes.txt") as file:
        await file.write(content)
        return await process.resources.keep(file, UploadFields())


async def statuses(database: SqliteDatabase) -> list[str]:
    return [row[0] for row in await database.fetch("SELECT status FROM user_resources ORDER BY created_at, id")]


async def until(database: SqliteDatabase, *wanted: str) -> None:
    async with asyncio.timeout(30):
        while await statuses(database) != list(wanted):
            await asyncio.sleep(0.005)


def all_files(root: Path) -> list[str]:
    return sorted(path.name for path in root.rglob("*") if path.is_file())


@pytest.fixture
def next_start(front: FrontDoor, start: StartProcess) -> Callable[[], Process]:
    """The next process on the same data, after the leases of the one before have run out."""

    def go() -> Process:
        front.clock.forward(seconds=LEASE_MS / 1000 + 1)
        return start("two")

    return go


@pytest.mark.parametrize("point", ["receiving", "file written", "file in place"])
async def test_a_crash_before_the_row_leaves_nothing_after_the_next_start(
    point: str,
    process: Process,
    next_start: Callable[[], Process],
    storage_root: Path,
    database: SqliteDatabase,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def gone(self: NewFile) -> None:
        raise Crash

    with monkeypatch.context() as patch, pytest.raises(Crash):
        patch.setattr(FileIntents, "abandon", crash)
        patch.setattr(NewFile, "abandon", lambda self: self._file.close())
        if point == "receiving":
            patch.setattr(incoming, "_WRITE_BYTES", 1)
            async with process.resources.receive("ann", "notes.txt") as file:
                await file.write(SMALL)
        elif point == "file written":
            patch.setattr(NewFile, "finish", gone)
        else:
            patch.setattr(process.resources, "_record", crash)
        await upload(process)
    assert len(all_files(storage_root)) == 1
    again = next_start()
    await again.attachments.sweep()
    assert await again.attachments.backfill() == 0
    assert all_files(storage_root) == []
    for table in TABLES:
        assert await database.fetch(f"SELECT * FROM {table}") == []


@pytest.mark.sqlite
@pytest.mark.parametrize("point", ["before the upstream", "after the upstream"])
async def test_a_crash_after_the_row_is_made_good_by_the_next_start(
    point: str,
    process: Process,
    next_start: Callable[[], Process],
    storage_root: Path,
    database: SqliteDatabase,
    upstream: RecordingUpstream,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch, pytest.raises(Crash):
        patch.setattr(Leases, "release", crash)
        if point == "before the upstream":
            patch.setattr(Sender, "add_at_once", crash)
        else:
            patch.setattr(Indexer, "settle", crash)
        await upload(process)
    assert await statuses(database) == ["stored"]
    again = next_start()
    await again.attachments.sweep()
    again.resources.resume()
    await until(database, "indexed")
    assert all_files(storage_root) == ["notes.txt"]
    assert len({request.session_id for request in upstream.requests("add")}) == 1
    assert len({request.messages[0].timestamp for request in upstream.requests("add")}) == 1


async def test_a_crash_while_a_refused_upload_is_undone_leaves_nothing_after_the_next_start(
    process: Process,
    next_start: Callable[[], Process],
    storage_root: Path,
    database: SqliteDatabase,
    upstream: RecordingUpstream,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    upstream.fail("add", UpstreamRefused(415, "UNSUPPORTED_FORMAT", "no parser"))
    with monkeypatch.context() as patch, pytest.raises(Crash):
        patch.setattr(FileIntents, "remove", crash)
        await upload(process)
    assert all_files(storage_root) == ["notes.txt"]
    assert await statuses(database) == []
    await next_start().attachments.sweep()
    assert all_files(storage_root) == []


async def test_unfinished_indexing_goes_on_after_a_restart(
    process: Process, start: StartProcess, database: SqliteDatabase, upstream: RecordingUpstream
) -> None:
    """A process that ends in order gives its leases back, so the next one need not wait."""
    indexing_goes_on = upstream.hold("add")
    for user_id in ("ann", "anna", "a_b"):
        await upload(process, BIG, user_id)
    await asyncio.sleep(0.05)
    assert upstream.in_flight == 2
    await process.close()
    assert await statuses(database) == ["stored", "stored", "stored"]
    assert upstream.in_flight == 0
    indexing_goes_on.set()
    start("two").resources.resume()
    await until(database, "indexed", "indexed", "indexed")


@pytest.mark.sqlite
async def test_one_users_many_files_do_not_hold_up_those_of_others(
    process: Process, database: SqliteDatabase, upstream: RecordingUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "_LOOKED_AT", 4)
    indexing_goes_on = upstream.hold("add")
    for number in range(9):
        await upload(process, BIG + bytes([number]))
    await asyncio.sleep(0.05)
    assert served(upstream) == ["ann"]
    for user_id in ("anna", "a_b", "axb"):
        for number in range(2):
            await upload(process, BIG + bytes([number]), user_id)
    await asyncio.sleep(0.05)
    assert served(upstream) == ["ann", "anna"]
    indexing_goes_on.set()
    await until(database, *["indexed"] * 15)
    assert sorted(served(upstream)[2:5]) == ["a_b", "ann", "axb"]
    assert sorted(served(upstream)[:8]) == ["a_b", "a_b", "ann", "ann", "anna", "anna", "axb", "axb"]


def served(upstream: RecordingUpstream) -> list[str]:
    return [str(caller.user_id) for caller in upstream.callers("add")]


async def test_a_worker_does_not_ask_again_and_again_for_what_another_process_has(
    process: Process, start: StartProcess, upstream: RecordingUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream.hold("add")
    await upload(process, BIG)
    looks: list[str] = []
    other = start("two")
    acquire = other.resources._indexer._leases.acquire

    async def counted(name: str, *, seconds: float) -> bool:
        looks.append(name)
        return await acquire(name, seconds=seconds)

    monkeypatch.setattr(other.resources._indexer._leases, "acquire", counted)
    other.resources.resume()
    await asyncio.sleep(0.1)
    assert 1 <= len(looks) <= 2


async def test_two_processes_never_index_the_same_resource(
    process: Process, start: StartProcess, database: SqliteDatabase, upstream: RecordingUpstream
) -> None:
    upstream.delay("add", 0.02)
    other = start("two")
    for number in range(6):
        await upload(process, BIG + bytes([number]))
        other.resources.resume()
    await until(database, *["indexed"] * 6)
    sessions = [request.session_id for request in upstream.requests("add")]
    assert len(sessions) == len(set(sessions)) == 6


async def test_what_another_process_finished_between_look_and_lease_is_left_alone(
    process: Process,
    start: StartProcess,
    database: SqliteDatabase,
    upstream: RecordingUpstream,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Indexer, "wake", lambda self: None)
    await upload(process, BIG)
    other = start("two")
    acquire = other.resources._indexer._leases.acquire

    async def late(name: str, *, seconds: float) -> bool:
        assert await process.resources._indexer.index_next()
        return await acquire(name, seconds=seconds)

    monkeypatch.setattr(other.resources._indexer._leases, "acquire", late)
    assert not await other.resources._indexer.index_next()
    assert await statuses(database) == ["indexed"]
    assert len(upstream.requests("add")) == 1


async def test_what_another_process_indexes_before_its_answer_is_left_to_it(
    process: Process, start: StartProcess, database: SqliteDatabase, upstream: RecordingUpstream
) -> None:
    answer = upstream.hold("add")
    uploading = asyncio.create_task(upload(process))
    await until(database, "stored")
    start("two").resources.resume()
    await asyncio.sleep(0.05)
    assert len(upstream.requests("add")) == 1
    answer.set()
    assert (await uploading).resource.status == "indexed"


async def test_two_processes_with_the_same_bytes_make_one_resource(
    process: Process, start: StartProcess, database: SqliteDatabase, upstream: RecordingUpstream, storage_root: Path
) -> None:
    other = start("two")
    replies = await asyncio.gather(upload(process), upload(other), upload(process), upload(other))
    assert sorted(reply.created for reply in replies) == [False, False, False, True]
    assert await statuses(database) == ["indexed"]
    assert len(upstream.requests("add")) == 1
    assert all_files(storage_root) == ["notes.txt"]


async def test_a_lease_is_renewed_while_indexing_takes_long(
    process: Process,
    start: StartProcess,
    front: FrontDoor,
    database: SqliteDatabase,
    upstream: RecordingUpstream,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(indexing, "_RENEW_SECONDS", 0.001)
    answer = upstream.hold("add")
    await upload(process, BIG)
    for _ in range(3):
        front.clock.forward(seconds=50)
        await asyncio.sleep(0.05)
        start("two").resources.resume()
        await asyncio.sleep(0.02)
    assert len(upstream.requests("add")) == 1
    answer.set()
    await until(database, "indexed")


async def test_a_deleted_resource_waits_until_it_is_restored(
    process: Process,
    start: StartProcess,
    database: SqliteDatabase,
    upstream: RecordingUpstream,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Indexer, "wake", lambda self: None)
        resource = (await upload(process, BIG)).resource
    await process.resources.delete("ann", resource.id)
    process.resources.resume()
    await asyncio.sleep(0.05)
    assert upstream.calls == []
    await process.resources.restore("ann", resource.id)
    await until(database, "indexed")


async def test_background_work_survives_a_database_that_cannot_serve(
    process: Process, database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = [StorageUnavailable("not now"), RuntimeError("a bug")]
    index_next = Indexer.index_next

    async def sometimes(self: Indexer) -> bool:
        if failures:
            raise failures.pop()
        return await index_next(self)

    monkeypatch.setattr(Indexer, "index_next", sometimes)
    monkeypatch.setattr(indexing, "_LOOK_AGAIN_SECONDS", 0.01)
    await upload(process, BIG)
    await until(database, "indexed")


PASSING = [
    StorageUnavailable("not now"),
    UpstreamUnreachable("the indexing process was stopped"),
    UpstreamTimeout("too slow"),
    UpstreamRefused(429, "QUEUE_SATURATED", "busy"),
    UpstreamRefused(503, "EXTERNAL_SERVICE_UNAVAILABLE", "down"),
]


@pytest.mark.parametrize("fault", PASSING, ids=lambda fault: f"{type(fault).__name__} {fault.status}")
async def test_a_passing_fault_leaves_a_resource_stored_until_it_has_passed(
    fault: MemoryGatewayError,
    process: Process,
    database: SqliteDatabase,
    upstream: RecordingUpstream,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tries, "FIRST_PAUSE_SECONDS", 2.0)
    monkeypatch.setattr(indexing, "_LOOK_AGAIN_SECONDS", 0.01)
    upstream.fail("add", fault)
    await upload(process, BIG)
    while not upstream.requests("add"):
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    assert await statuses(database) == ["stored"]
    assert len(upstream.requests("add")) == 1
    await until(database, "indexed")
    assert len(upstream.requests("add")) == 2
    async with asyncio.timeout(30):  # forgotten a moment after the row says so
        while len(process.resources._indexer._tries):
            await asyncio.sleep(0.005)


async def test_a_fault_that_never_passes_fails_a_resource_after_so_many_tries(
    process: Process, database: SqliteDatabase, upstream: RecordingUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tries, "FIRST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(tries, "_MOST_TRIES", 3)
    upstream.fail("add", UpstreamTimeout("too slow"), times=4)
    await upload(process, BIG)
    await until(database, "failed")
    assert len(upstream.requests("add")) == 3


async def test_what_waits_for_its_next_try_holds_up_nothing_else(
    process: Process, database: SqliteDatabase, upstream: RecordingUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "_LOOKED_AT", 1)
    upstream.fail("add", UpstreamTimeout("too slow"), times=2)
    for number in range(3):
        await upload(process, BIG + bytes([number]))
    await until(database, "stored", "stored", "indexed")


async def test_the_same_bytes_again_end_the_pause(
    process: Process, database: SqliteDatabase, upstream: RecordingUpstream
) -> None:
    upstream.fail("add", UpstreamTimeout("too slow"))
    await upload(process, BIG)
    await asyncio.sleep(0.05)
    assert await statuses(database) == ["stored"]
    assert not (await upload(process, BIG)).created
    await until(database, "indexed")


async def test_tries_of_what_was_deleted_are_forgotten(
    process: Process, database: SqliteDatabase, upstream: RecordingUpstream
) -> None:
    upstream.fail("add", UpstreamTimeout("too slow"))
    resource = (await upload(process, BIG)).resource
    await asyncio.sleep(0.05)
    assert len(process.resources._indexer._tries) == 1
    await process.resources.delete("ann", resource.id)
    process.resources.resume()
    await asyncio.sleep(0.05)
    async with asyncio.timeout(30):  # forgotten a moment after the row says so
        while len(process.resources._indexer._tries):
            await asyncio.sleep(0.005)
    assert await statuses(database) == ["stored"]


async def test_a_file_that_cannot_be_closed_is_removed_with_its_folder(
    process: Process, storage_root: Path, database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: NewFile) -> None:
        self._file.close()
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(NewFile, "abandon", broken)
    monkeypatch.setattr(incoming, "_WRITE_BYTES", 1)
    with pytest.raises(PayloadTooLarge):
        await upload(process, b"x" * (MAX_UPLOAD_BYTES + 1))
    async with process.resources.receive("ann", "notes.txt") as file:
        await file.write(SMALL)
    assert all_files(storage_root) == []
    assert await database.fetch("SELECT * FROM file_intents") == []


async def test_a_full_disk_is_said_and_leaves_nothing(
    process: Process, storage_root: Path, database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: NewFile, chunk: bytes) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(StorageUnavailable):
        patch.setattr(NewFile, "write", full)
        await upload(process)
    assert all_files(storage_root) == []
    for table in TABLES:
        assert await database.fetch(f"SELECT * FROM {table}") == []
