import io
import json
import os
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from memory_gateway.kit.errors import StorageUnavailable, UpstreamUnreachable
from memory_gateway.storage.sqlite import SqliteDatabase
from tests.fakes.front_door import FrontDoor
from tests.gateway.conftest import client_of


class Room:
    """Holds the rows that a test gives it."""

    def __init__(self, **rows_of: list[dict[str, Any]]) -> None:
        self.rows_of = rows_of

    async def export(self, user_id: str) -> AsyncIterator[dict[str, Any]]:
        for row in self.rows_of.get(user_id, []):
            yield row

    async def erase(self, user_id: str) -> None:
        self.rows_of.pop(user_id, None)


async def exported(front: FrontDoor, user_id: str) -> zipfile.ZipFile:
    with await front.user_export.write(user_id) as packed:
        return zipfile.ZipFile(io.BytesIO(packed.read()))


def lines(archive: zipfile.ZipFile, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in archive.read(name).decode().splitlines()]


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


async def test_a_user_gets_every_row_of_every_room_and_of_the_upstream(
    database: SqliteDatabase, tmp_path: Path
) -> None:
    note = {"kind": "note", "text": "早报 😀"}
    front = FrontDoor(database, tmp_path, [Room(ann=[note, {"kind": "tag", "n": 1}, note], anna=[{"kind": "note"}])])
    await front.accounts.create("ann")
    front.upstream.reply("export", [{"kind": "turn", "text": "hello"}])
    archive = await exported(front, "ann")
    assert lines(archive, "note.jsonl") == [note, note]
    assert lines(archive, "tag.jsonl") == [{"kind": "tag", "n": 1}]
    assert lines(archive, "turn.jsonl") == [{"kind": "turn", "text": "hello"}]
    assert lines(archive, "account.jsonl") == [
        {"kind": "account", "user_id": "ann", "created_at": "2026-05-28T20:26:40.000Z", "erased_at": None}
    ]
    assert lines(archive, "key.jsonl") == [{"kind": "key", "created_at": "2026-05-28T20:26:40.000Z", "stops_at": None}]
    assert [act["action"] for act in lines(archive, "audit.jsonl")] == ["export"]
    assert archive.testzip() is None


async def test_look_alikes_get_their_own_files_only(front: FrontDoor) -> None:
    for user_id in ("ann", "anna", "a_b", "axb"):
        await front.accounts.create(user_id)
        write(front.storage_root / user_id / "resources" / "1" / "名前 é.txt", f"of {user_id}".encode())
    for user_id in ("ann", "anna", "a_b", "axb"):
        archive = await exported(front, user_id)
        files = [name for name in archive.namelist() if name.startswith("files/")]
        assert files == ["files/resources/1/名前 é.txt"]
        assert archive.read(files[0]) == f"of {user_id}".encode()


async def test_the_upstream_is_told_every_place_that_the_rooms_know_of(
    database: SqliteDatabase, tmp_path: Path
) -> None:
    def session(app_id: str, project_id: str) -> dict[str, Any]:
        return {"kind": "session", "app_id": app_id, "project_id": project_id}

    resource = {"kind": "resource", "app_id": "shop", "project_id": "p2"}
    one = Room(ann=[session("shop", "p1"), session("shop", "p1")], anna=[session("other", "p1")])
    front = FrontDoor(database, tmp_path, [one, Room(ann=[resource])])
    await exported(front, "ann")
    assert front.upstream.requests("export") == [("ann", [("default", "default"), ("shop", "p1"), ("shop", "p2")])]


async def test_an_upload_under_way_is_no_file_yet(front: FrontDoor) -> None:
    await front.accounts.create("ann")
    write(front.storage_root / "ann" / "resources" / "1" / ".part", b"hal")
    write(front.storage_root / "ann" / "resources" / "2" / "x.part", b"whole")
    archive = await exported(front, "ann")
    assert [name for name in archive.namelist() if name.startswith("files/")] == ["files/resources/2/x.part"]


async def test_a_file_that_goes_meanwhile_is_left_out(front: FrontDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    await front.accounts.create("ann")
    write(front.storage_root / "ann" / "a.txt", b"going")
    write(front.storage_root / "ann" / "b.txt", b"staying")
    open_file = os.open

    def gone_first(path: str | Path, *rest: int) -> int:
        if isinstance(path, Path) and path.name == "a.txt":
            path.unlink()
        return open_file(path, *rest)

    monkeypatch.setattr(os, "open", gone_first)
    archive = await exported(front, "ann")
    assert [name for name in archive.namelist() if name.startswith("files/")] == ["files/b.txt"]


async def test_links_lead_nowhere(front: FrontDoor, tmp_path: Path) -> None:
    await front.accounts.create("ann")
    write(tmp_path / "outside" / "secret.txt", b"secret")
    write(front.storage_root / "ann" / "kept.txt", b"kept")
    (front.storage_root / "ann" / "file_link.txt").symlink_to(tmp_path / "outside" / "secret.txt")
    (front.storage_root / "ann" / "folder_link").symlink_to(tmp_path / "outside")
    archive = await exported(front, "ann")
    assert [name for name in archive.namelist() if name.startswith("files/")] == ["files/kept.txt"]


async def test_many_rows_pass_through_the_disk(database: SqliteDatabase, tmp_path: Path) -> None:
    rows = [{"kind": "note", "n": n, "text": "x" * 500} for n in range(2000)]
    front = FrontDoor(database, tmp_path, [Room(ann=rows)])
    assert lines(await exported(front, "ann"), "note.jsonl") == rows
    assert list((tmp_path / "tmp").iterdir()) == []


async def test_the_route_hands_out_the_callers_zip_with_its_length(database: SqliteDatabase, tmp_path: Path) -> None:
    front = FrontDoor(database, tmp_path, [Room(ann=[{"kind": "note", "n": 1}], teo=[{"kind": "note", "n": 2}])])
    headers = await front.headers_of("teo")
    async with client_of(front.app()) as client:
        reply = await client.get("/users/me/export", headers=headers)
        assert (await client.get("/users/me/export")).status_code == 401
    assert (reply.status_code, reply.headers["content-type"]) == (200, "application/zip")
    assert reply.headers["content-disposition"] == 'attachment; filename="memory-export.zip"'
    assert int(reply.headers["content-length"]) == len(reply.content)
    assert lines(zipfile.ZipFile(io.BytesIO(reply.content)), "note.jsonl") == [{"kind": "note", "n": 2}]


async def test_an_upstream_that_fails_fails_the_export(client: httpx.AsyncClient, front: FrontDoor) -> None:
    headers = await front.headers_of("ann")
    front.upstream.fail("export", UpstreamUnreachable("gone"))
    assert (await client.get("/users/me/export", headers=headers)).status_code == 502
    assert (await client.get("/users/me/export", headers=headers)).status_code == 200


async def test_a_disk_that_takes_nothing_is_503(front: FrontDoor, tmp_path: Path) -> None:
    await front.accounts.create("ann")
    (tmp_path / "tmp").write_text("in the way")
    with pytest.raises(StorageUnavailable):
        await front.user_export.write("ann")


@pytest.mark.parametrize("kind", ["../x", "a/b", ""])
async def test_a_kind_cannot_leave_the_archive(database: SqliteDatabase, tmp_path: Path, kind: str) -> None:
    front = FrontDoor(database, tmp_path, [Room(ann=[{"kind": kind}])])
    with pytest.raises(ValueError, match="not a kind of row"):
        await front.user_export.write("ann")
