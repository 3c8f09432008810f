from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from memory_gateway.gateway.accounts.schemas import UpstreamErasure
from memory_gateway.kit.errors import Conflict, NotFound, StorageUnavailable, Unauthorized, UpstreamUnreachable
from memory_gateway.storage.sqlite import SqliteDatabase
from memory_gateway.upstream.port import Erasure
from tests.fakes.front_door import FrontDoor
from tests.gateway.conftest import client_of


class Room:
    """Notes whom it was told to forget; fails as often as it is told to."""

    def __init__(self) -> None:
        self.forgotten: list[str] = []
        self.failures = 0

    async def export(self, user_id: str) -> AsyncIterator[dict[str, Any]]:
        rows: tuple[dict[str, Any], ...] = ()
        for row in rows:
            yield row

    async def erase(self, user_id: str) -> None:
        if self.failures:
            self.failures -= 1
            raise StorageUnavailable("the disk is full")
        self.forgotten.append(user_id)


@pytest.fixture
def room() -> Room:
    return Room()


@pytest.fixture
def front(database: SqliteDatabase, tmp_path: Path, room: Room) -> FrontDoor:
    return FrontDoor(database, tmp_path, [room])


def write_file(front: FrontDoor, user_id: str) -> Path:
    path = front.storage_root / user_id / "resources" / "1" / "a.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(user_id)
    return path


async def test_rows_files_and_the_upstreams_memory_go_and_those_of_look_alikes_stay(
    front: FrontDoor, room: Room, tmp_path: Path
) -> None:
    files = {}
    for user_id in ("ann", "anna", "a_b", "axb"):
        await front.accounts.create(user_id)
        files[user_id] = write_file(front, user_id)
    outside = tmp_path / "outside.txt"
    outside.write_text("kept")
    (front.storage_root / "a_b" / "link").symlink_to(outside)
    await front.user_erasure.erase("a_b")
    assert room.forgotten == ["a_b"]
    assert front.upstream.requests("erase") == ["a_b"]
    assert {user_id: path.exists() for user_id, path in files.items()} == {
        "ann": True,
        "anna": True,
        "a_b": False,
        "axb": True,
    }
    assert not (front.storage_root / "a_b").exists()
    assert outside.read_text() == "kept"
    keys = await front.database.fetch("SELECT user_id, closed_at FROM user_keys ORDER BY user_id")
    assert keys == [("ann", None), ("anna", None), ("axb", None)]
    assert await front.database.fetch("SELECT user_id, erased_at IS NULL FROM users ORDER BY user_id") == [
        ("a_b", 0),
        ("ann", 1),
        ("anna", 1),
        ("axb", 1),
    ]


async def test_the_audit_log_forgets_what_the_user_acted_on(front: FrontDoor) -> None:
    await front.accounts.create("ann")
    await front.audit.record("ann", "add", "session", "chat:my divorce")
    await front.user_erasure.erase("ann")
    acts = await front.database.fetch("SELECT action, object_id FROM audit_log WHERE user_id = 'ann' ORDER BY id")
    assert acts == [("add", ""), ("erase", "ann")]


async def test_a_folder_that_is_a_link_is_unlinked_and_not_followed(front: FrontDoor, tmp_path: Path) -> None:
    await front.accounts.create("ann")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.txt").write_text("kept")
    front.storage_root.mkdir()
    (front.storage_root / "ann").symlink_to(tmp_path / "elsewhere")
    await front.user_erasure.erase("ann")
    assert (tmp_path / "elsewhere" / "a.txt").read_text() == "kept"
    assert not (front.storage_root / "ann").is_symlink()


async def test_what_the_upstream_still_holds_is_said(front: FrontDoor) -> None:
    await front.accounts.create("ann")
    front.upstream.reply("erase", Erasure(erased=False, remaining="EverOS cannot delete"))
    erased = await front.user_erasure.erase("ann")
    assert erased.upstream == UpstreamErasure(erased=False, remaining="EverOS cannot delete")
    assert erased.erased is True


async def test_nobody_cannot_be_erased(front: FrontDoor, room: Room) -> None:
    await front.accounts.create("ann")
    for user_id in ("nobody", "Ann", "%", "..", "a/b"):
        with pytest.raises(NotFound):
            await front.user_erasure.erase(user_id)
    assert (room.forgotten, front.upstream.calls) == ([], [])


async def test_the_door_closes_before_anything_is_forgotten(front: FrontDoor, room: Room) -> None:
    key = (await front.accounts.create("ann")).user_key
    front.upstream.fail("erase", UpstreamUnreachable("gone"))
    with pytest.raises(UpstreamUnreachable):
        await front.user_erasure.erase("ann")
    assert room.forgotten == []
    with pytest.raises(Unauthorized):
        await front.accounts.authenticate("ann", key)
    with pytest.raises(Conflict):
        await front.accounts.create("ann")


async def test_a_user_whose_erasure_failed_can_ask_again_with_the_own_key_and_do_nothing_else(
    front: FrontDoor, room: Room
) -> None:
    headers = await front.headers_of("ann")
    room.failures = 1
    async with client_of(front.app()) as client:
        assert (await client.delete("/users/ann", headers=headers)).status_code == 503
        for method, path in (("GET", "/notes"), ("POST", "/users/ann/keys"), ("GET", "/users/me/export")):
            assert (await client.request(method, path, headers=headers)).status_code == 401
        assert (await client.delete("/users/ann", headers=headers)).status_code == 200
        assert (await client.delete("/users/ann", headers=headers)).status_code == 401
    assert room.forgotten == ["ann"]


async def test_a_start_finishes_what_a_crash_interrupted(front: FrontDoor, room: Room) -> None:
    for user_id in ("ann", "anna"):
        await front.accounts.create(user_id)
    path = write_file(front, "ann")
    room.failures = 1
    with pytest.raises(StorageUnavailable):
        await front.user_erasure.erase("ann")
    assert path.exists()
    await front.user_erasure.resume_erasures()
    assert room.forgotten == ["ann"]
    assert not path.exists()
    assert await front.database.fetch("SELECT DISTINCT user_id FROM user_keys") == [("anna",)]


async def test_an_erasure_that_fails_again_does_not_hold_up_the_others(
    front: FrontDoor, room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    for user_id in ("ann", "teo"):
        await front.accounts.create(user_id)
        room.failures = 1
        with pytest.raises(StorageUnavailable):
            await front.user_erasure.erase(user_id)
    room.failures = 1
    await front.user_erasure.resume_erasures()
    assert room.forgotten == ["teo"]
    assert "is not finished" in caplog.text
    await front.user_erasure.resume_erasures()
    assert room.forgotten == ["teo", "ann"]


async def test_an_erasure_that_a_start_finished_is_swept_later_as_well(front: FrontDoor, room: Room) -> None:
    await front.accounts.create("ann")
    room.failures = 1
    with pytest.raises(StorageUnavailable):
        await front.user_erasure.erase("ann")
    for _ in range(3):
        await front.user_erasure.resume_erasures()
        front.clock.forward(seconds=3600)
    assert room.forgotten == ["ann", "ann"]


async def test_what_a_late_request_wrote_is_swept_once_no_request_can_be_left(front: FrontDoor, room: Room) -> None:
    await front.accounts.create("ann")
    await front.user_erasure.erase("ann")
    late = write_file(front, "ann")
    front.clock.forward(seconds=3599)
    await front.user_erasure.resume_erasures()
    assert late.exists()
    front.clock.forward(seconds=1)
    await front.user_erasure.resume_erasures()
    assert not late.exists()
    front.clock.forward(seconds=7200)
    await front.user_erasure.resume_erasures()
    assert room.forgotten == ["ann", "ann"]


async def test_an_erasure_ends_only_when_its_traces_are_gone_from_the_disk(
    front: FrontDoor, room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def busy() -> None:
        raise StorageUnavailable("still being read")

    await front.accounts.create("ann")
    with monkeypatch.context() as patch:
        patch.setattr(front.database, "scrub", busy)
        for erase in (front.user_erasure.erase("ann"), front.user_erasure.resume_erasures()):
            with pytest.raises(StorageUnavailable):
                await erase
    assert await front.database.fetch("SELECT cleared_at FROM users") == [(None,)]
    await front.user_erasure.resume_erasures()
    [(cleared_at,)] = await front.database.fetch("SELECT cleared_at FROM users")
    assert cleared_at is not None


async def test_many_erasures_that_go_on_are_scrubbed_once(front: FrontDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    scrubs: list[None] = []

    async def scrub() -> None:
        scrubs.append(None)

    for user_id in ("ann", "anna", "a_b"):
        await front.accounts.create(user_id)
        await front.user_erasure.erase(user_id)
    monkeypatch.setattr(front.database, "scrub", scrub)
    await front.user_erasure.resume_erasures()
    assert scrubs == []
    front.clock.forward(seconds=3600)
    await front.user_erasure.resume_erasures()
    assert scrubs == [None]
