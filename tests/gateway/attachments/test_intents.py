"""A crash between a file and its row leaves nothing behind; work under way is left alone."""

import asyncio
import base64
from collections.abc import Callable
from pathlib import Path

import pytest

from memory_gateway.blobs import folder
from memory_gateway.blobs.folder import FolderBlobs
from memory_gateway.engine.schemas import ContentItem, Message
from memory_gateway.gateway.attachments import intents, service
from memory_gateway.gateway.attachments.schemas import StagedAttachments
from memory_gateway.gateway.attachments.service import Attachments
from memory_gateway.kit.errors import StorageUnavailable
from memory_gateway.kit.files import NewFile
from memory_gateway.kit.ids import uuid7_id
from memory_gateway.storage.sqlite import SqliteDatabase
from tests.fakes.clock import TurnedClock
from tests.gateway.attachments.conftest import committed

ITEM = ContentItem("image", base64=base64.b64encode(b"cat").decode(), name="cat.png")
INTENTS = "SELECT folder FROM file_intents"
ROWS = "SELECT id FROM memory_attachments"


class Crash(BaseException):
    """The process is gone: nothing that it would have done comes to pass."""


async def staged_by(attachments: Attachments, user_id: str = "ann") -> StagedAttachments:
    return await attachments.stage(user_id, "default", "default", "chat:1", (Message("ann", "user", 1, [ITEM]),))


def all_files(root: Path) -> list[str]:
    return sorted(path.name for path in root.rglob("*") if path.is_file())


@pytest.fixture
def next_start(database: SqliteDatabase, clock: TurnedClock, storage_root: Path) -> Callable[[], Attachments]:
    """The next process on the same data, after the leases of the one before have run out."""

    def start() -> Attachments:
        clock.forward(seconds=intents.LEASE_MS / 1000 + 1)
        return Attachments(database, clock, uuid7_id, FolderBlobs(storage_root))

    return start


async def crash(*_: object, **__: object) -> None:
    raise Crash


@pytest.mark.parametrize("point", ["write", "finish"])
async def test_a_crash_while_files_are_written(
    point: str,
    attachments: Attachments,
    database: SqliteDatabase,
    storage_root: Path,
    next_start: Callable[[], Attachments],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def gone(self: NewFile, *_: object) -> None:
        raise Crash

    with monkeypatch.context() as patch, pytest.raises(Crash):
        patch.setattr(NewFile, point, gone)
        patch.setattr(NewFile, "abandon", lambda self: self._file.close())
        patch.setattr(service.Attachments, "discard", crash)
        await staged_by(attachments)
    assert all_files(storage_root) == [".part"]
    assert await next_start().sweep() == 1
    assert all_files(storage_root) == []
    assert await database.fetch(INTENTS) == []


async def test_a_crash_between_the_files_and_their_rows(
    attachments: Attachments, database: SqliteDatabase, storage_root: Path, next_start: Callable[[], Attachments]
) -> None:
    await staged_by(attachments)
    assert all_files(storage_root) == ["cat.png"]
    assert await next_start().sweep() == 1
    assert all_files(storage_root) == []
    assert await database.fetch(INTENTS) == []


async def test_a_crash_of_the_sweep_itself_is_made_good_by_the_next(
    attachments: Attachments, storage_root: Path, next_start: Callable[[], Attachments], monkeypatch: pytest.MonkeyPatch
) -> None:
    await staged_by(attachments)
    with monkeypatch.context() as patch, pytest.raises(Crash):
        patch.setattr(intents.FileIntents, "remove", crash)
        await next_start().sweep()
    assert all_files(storage_root) == ["cat.png"]
    assert await next_start().sweep() == 1
    assert all_files(storage_root) == []


async def test_what_cannot_be_removed_now_is_removed_by_a_later_sweep(
    attachments: Attachments, storage_root: Path, next_start: Callable[[], Attachments], monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(_folder: Path) -> None:
        raise PermissionError

    staged = await staged_by(attachments)
    with monkeypatch.context() as patch:
        patch.setattr(folder, "remove_folder", busy)
        await attachments.discard(staged)
    assert all_files(storage_root) == ["cat.png"]
    await next_start().sweep()
    assert all_files(storage_root) == []


async def test_work_of_a_living_process_is_left_alone(
    attachments: Attachments, database: SqliteDatabase, clock: TurnedClock, storage_root: Path
) -> None:
    staged = await staged_by(attachments)
    clock.forward(seconds=30)
    assert await Attachments(database, clock, uuid7_id, FolderBlobs(storage_root)).sweep() == 0
    await committed(attachments, staged)
    assert all_files(storage_root) == ["cat.png"]


async def test_a_lease_is_renewed_while_its_folder_is_in_use(
    attachments: Attachments, database: SqliteDatabase, clock: TurnedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intents, "_RENEW_SECONDS", 0.001)
    staged = await staged_by(attachments)
    for _ in range(3):
        clock.forward(seconds=50)
        await asyncio.sleep(0.05)
        assert await attachments.sweep() == 0
    await committed(attachments, staged)
    await asyncio.sleep(0.05)
    assert attachments.intents._in_use == set()


async def test_kept_files_are_never_swept(
    attachments: Attachments, storage_root: Path, next_start: Callable[[], Attachments]
) -> None:
    staged = await staged_by(attachments)
    await committed(attachments, staged)
    await attachments.discard(staged)
    assert await next_start().sweep() == 0
    assert all_files(storage_root) == ["cat.png"]


async def test_who_comes_after_a_sweep_is_refused(
    attachments: Attachments, database: SqliteDatabase, next_start: Callable[[], Attachments]
) -> None:
    """No row ever names a removed file."""
    staged = await staged_by(attachments)
    await next_start().sweep()
    with pytest.raises(StorageUnavailable):
        await committed(attachments, staged)
    assert await database.fetch(ROWS) == []


async def test_who_comes_in_the_middle_of_a_sweep_is_refused_as_well(
    attachments: Attachments,
    database: SqliteDatabase,
    next_start: Callable[[], Attachments],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    staged = await staged_by(attachments)
    with monkeypatch.context() as patch, pytest.raises(Crash):
        patch.setattr(intents.FileIntents, "remove", crash)
        await next_start().sweep()
    with pytest.raises(StorageUnavailable):
        await committed(attachments, staged)
    assert await database.fetch(ROWS) == []


async def test_the_lease_of_a_file_that_another_add_was_quicker_with_runs_out(
    attachments: Attachments, storage_root: Path, clock: TurnedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intents, "_RENEW_SECONDS", 0.001)
    for staged in [await staged_by(attachments), await staged_by(attachments)]:
        await committed(attachments, staged)
    await asyncio.sleep(0.05)
    clock.forward(seconds=intents.LEASE_MS / 1000 + 1)
    await asyncio.sleep(0.05)
    assert await attachments.sweep() == 1
    assert all_files(storage_root) == ["cat.png"]


async def test_a_database_that_cannot_serve_ends_the_renewal_of_all_that_is_abandoned(
    attachments: Attachments, clock: TurnedClock, storage_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unavailable(*_: object) -> bool:
        raise StorageUnavailable("not now")

    items = [ITEM, ContentItem("image", base64=base64.b64encode(b"dog").decode(), name="dog.png")]
    staged = await attachments.stage("ann", "default", "default", "chat:1", (Message("ann", "user", 1, items),))
    with monkeypatch.context() as patch, pytest.raises(StorageUnavailable):
        patch.setattr(intents.FileIntents, "_claim", unavailable)
        await attachments.discard(staged)
    assert attachments.intents._in_use == set()
    clock.forward(seconds=intents.LEASE_MS / 1000 + 1)
    assert await attachments.sweep() == 2
    assert all_files(storage_root) == []


async def test_a_cancelled_add_leaves_nothing(
    attachments: Attachments, database: SqliteDatabase, storage_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered = asyncio.Event()
    loop = asyncio.get_running_loop()
    finish = NewFile.finish

    def slow(self: NewFile) -> None:
        loop.call_soon_threadsafe(entered.set)
        finish(self)

    monkeypatch.setattr(NewFile, "finish", slow)
    task = asyncio.create_task(staged_by(attachments))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert all_files(storage_root) == []
    assert await database.fetch(INTENTS) == []
