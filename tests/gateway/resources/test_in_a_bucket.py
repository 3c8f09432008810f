"""Files in a bucket: two gateways on two machines, a bucket that fails, erasure and export."""

import asyncio
import base64
import hashlib
import io
import json
import os
import time
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from memory_gateway.blobs import bucket as bucket_module
from memory_gateway.blobs import s3
from memory_gateway.blobs.choose import open_blobs
from memory_gateway.engine.schemas import AddReply, AddRequest
from memory_gateway.gateway.attachments.intents import LEASE_MS
from memory_gateway.kit.errors import UpstreamRefused
from tests.fakes.databases import AnyDatabase
from tests.fakes.front_door import ADMIN_KEY
from tests.fakes.house import House, User
from tests.fakes.s3 import Bucket
from tests.fakes.upstream import EMBEDDED_LIKE, EVEROS_LIKE, RecordingUpstream

MIB = 1 << 20
NOTES = b"the lab moved to floor 3\n" * 20
TABLES = ("user_resources", "memory_attachments", "file_intents")
SECRETS = ("127.0.0.1", "box-", "s3:", "AKIA", "bucket's own words")


def house_of(bucket: Bucket, database: AnyDatabase, folder: Path, upstream: RecordingUpstream) -> House:
    """A gateway on a machine of its own."""
    folder.mkdir(exist_ok=True)
    return House(database, folder, upstream, blobs=open_blobs(bucket.server.settings(bucket.name, folder)))


@pytest.fixture
def upstream() -> RecordingUpstream:
    return RecordingUpstream(EMBEDDED_LIKE)


@pytest.fixture
async def house(
    bucket: Bucket, database: AnyDatabase, tmp_path: Path, upstream: RecordingUpstream
) -> AsyncIterator[House]:
    house = house_of(bucket, database, tmp_path / "here", upstream)
    yield house
    await house.close()


@pytest.fixture
async def other_house(
    bucket: Bucket, database: AnyDatabase, tmp_path: Path, house: House, upstream: RecordingUpstream
) -> AsyncIterator[House]:
    other = house_of(bucket, database, tmp_path / "there", upstream)
    yield other
    await other.close()


@pytest.fixture
async def ann(house: House) -> User:
    return await house.user("ann")


def at(house: House, user: User) -> User:
    """The same user at another gateway's door."""
    return User(house.client, user.user_id, user.headers["X-User-Key"], house.clock)


async def content(user: User, resource: dict[str, Any], **headers: str) -> httpx.Response:
    return await user._client.get(f"/resources/{resource['id']}/content", headers={**user.headers, **headers})


async def rows(database: AnyDatabase) -> list[Any]:
    return [row for table in TABLES for row in await database.fetch(f"SELECT * FROM {table}")]


def files_of(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.suffix not in {".db", ".db-wal", ".db-shm"}]


def attached(name: str, payload: bytes) -> list[dict[str, Any]]:
    return [{"type": "image", "name": name, "base64": base64.b64encode(payload).decode()}]


async def test_an_upload_lies_in_the_bucket_alone_and_its_rows_say_where(
    ann: User, bucket: Bucket, database: AnyDatabase, tmp_path: Path
) -> None:
    reply = await ann.upload("Plan: 季度.txt", NOTES)
    resource = reply.json()["resource"]
    key = f"ann/resources/{resource['id']}/Plan_ 季度.txt"
    assert (reply.status_code, resource["status"]) == (201, "indexed")
    assert bucket.objects() == {key: NOTES}
    assert files_of(tmp_path) == []
    uri = f"s3://{bucket.name}/files/of/users/{key}"
    assert await database.fetch("SELECT internal_uri, sha256 FROM user_resources") == [
        (uri, hashlib.sha256(NOTES).hexdigest())
    ]
    assert await database.fetch("SELECT internal_uri FROM memory_attachments") == [(uri,)]
    assert await database.fetch("SELECT * FROM file_intents") == []
    assert "s3:" not in reply.text


async def test_every_gateway_gives_and_finds_what_another_took(ann: User, other_house: House, bucket: Bucket) -> None:
    resource = (await ann.upload("notes.txt", NOTES)).json()["resource"]
    there = at(other_house, ann)
    whole = await content(there, resource)
    part = await content(there, resource, Range="bytes=4-6")
    assert (whole.content, whole.headers["ETag"]) == (NOTES, f'"{resource["sha256"]}"')
    assert (part.status_code, part.content, part.headers["Content-Range"]) == (206, b"lab", f"bytes 4-6/{len(NOTES)}")
    assert (await there.upload("again.txt", NOTES)).json() == {"resource": resource, "created": False}
    await other_house.attachments.sweep()
    assert list(bucket.objects()) == [f"ann/resources/{resource['id']}/notes.txt"]


async def test_an_upstream_of_this_process_reads_a_copy_that_goes_afterwards(
    ann: User, upstream: RecordingUpstream, tmp_path: Path
) -> None:
    read: list[bytes] = []

    def look(request: AddRequest) -> AddReply:
        [(uri, path)] = upstream.callers("add")[-1].own_files.items()
        assert uri.startswith("s3://")
        assert path.is_relative_to(tmp_path)
        read.append(path.read_bytes())
        return AddReply(1, "accumulated")

    upstream.reply("add", look)
    assert (await ann.upload("notes.txt", NOTES)).json()["resource"]["status"] == "indexed"
    assert read == [NOTES]
    assert files_of(tmp_path) == []


async def test_everos_gets_base64(bucket: Bucket, database: AnyDatabase, tmp_path: Path) -> None:
    everos = RecordingUpstream(EVEROS_LIKE)
    house = house_of(bucket, database, tmp_path / "here", everos)
    ann = await house.user("ann")
    assert (await ann.upload("notes.txt", NOTES)).status_code == 201
    [body] = everos.sent("add")
    assert body["messages"][0]["content"][0]["base64"] == base64.b64encode(NOTES).decode()
    await house.close()


async def test_a_large_file_is_indexed_by_a_gateway_that_never_saw_it(
    ann: User, house: House, other_house: House, upstream: RecordingUpstream, database: AnyDatabase
) -> None:
    await house.resources.close()
    house.resources._indexer.wake = lambda: None  # type: ignore[method-assign]
    big = os.urandom(2 * MIB)
    assert (await ann.upload("big.bin", big)).json()["resource"]["status"] == "stored"
    read: list[bytes] = []

    def look(request: AddRequest) -> AddReply:
        [path] = upstream.callers("add")[-1].own_files.values()
        read.append(path.read_bytes())
        return AddReply(1, "accumulated")

    upstream.reply("add", look)
    other_house.resources.resume()
    async with asyncio.timeout(30):
        while await database.fetch("SELECT status FROM user_resources") != [("indexed",)]:
            await asyncio.sleep(0.01)
    assert read == [big]


async def test_what_the_upstream_refuses_was_never_there(
    ann: User, upstream: RecordingUpstream, bucket: Bucket, database: AnyDatabase
) -> None:
    upstream.fail("add", UpstreamRefused(415, "UNSUPPORTED_FORMAT", "no parser"))
    assert (await ann.upload("notes.txt", NOTES)).status_code == 415
    assert bucket.objects() == {}
    assert await rows(database) == []


async def test_a_lost_file_is_mended_by_the_same_bytes(ann: User, house: House, bucket: Bucket) -> None:
    resource = (await ann.upload("notes.txt", NOTES)).json()["resource"]
    [key] = bucket.objects()
    await house.blobs.remove(key.rpartition("/")[0])
    assert (await content(ann, resource)).status_code == 503
    await ann.upload("other.txt", NOTES)
    assert (await content(ann, resource)).content == NOTES
    assert bucket.objects() == {key: NOTES}


async def test_a_file_in_a_conversation_lies_in_the_bucket_and_is_found_by_its_name(
    ann: User, house: House, bucket: Bucket, database: AnyDatabase, upstream: RecordingUpstream, tmp_path: Path
) -> None:
    assert (await ann.add(ann.says(attached("cat.png", b"\x89PNG cat")))).status_code == 200
    [(internal_uri,)] = await database.fetch("SELECT internal_uri FROM memory_attachments")
    [key] = bucket.objects()
    assert internal_uri == f"s3://{bucket.name}/files/of/users/{key}"
    assert key.startswith("ann/memory_attachments/")
    assert bucket.objects() == {key: b"\x89PNG cat"}
    [session_id] = {request.session_id for request in upstream.requests("add")}
    found = await house.attachments.for_sessions("ann", "default", "default", [session_id])
    assert [(one.name, one.internal_uri) for one in found[session_id]] == [("cat.png", internal_uri)]
    assert files_of(tmp_path) == []


async def test_a_failed_add_leaves_no_file(
    ann: User, bucket: Bucket, database: AnyDatabase, upstream: RecordingUpstream
) -> None:
    upstream.fail("add", UpstreamRefused(422, "BAD", "no"))
    assert (await ann.add(ann.says(attached("cat.png", b"cat")))).status_code == 422
    assert bucket.objects() == {}
    assert await rows(database) == []


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(bucket_module._CLIENT, "read_timeout", 0.3)


@pytest.mark.parametrize("how", ["gone", "refusing", "full"])
async def test_a_bucket_that_cannot_serve_is_503_and_all_is_well_once_it_is_back(
    how: str, ann: User, house: House, bucket: Bucket, database: AnyDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3, "_LOOK_AGAIN_SECONDS", 0.0)
    kept = (await ann.upload("kept.txt", b"kept")).json()["resource"]
    before, objects = await rows(database), bucket.objects()
    if how == "gone":
        bucket.server.stop()
    else:
        answer = (403, "AccessDenied") if how == "refusing" else (507, "XMinioStorageFull")
        bucket.server.plan = lambda method, _: answer if how == "refusing" or method != "GET" else None
    begun = time.monotonic()
    replies = [
        await ann.upload("notes.txt", NOTES),
        await ann.add(ann.says(attached("cat.png", b"cat"))),
    ]
    if how != "full":
        replies.append(await content(ann, kept))
    health = (await house.client.get("/health")).json()
    assert time.monotonic() - begun < 10
    assert {(reply.status_code, reply.json()["error"]["code"]) for reply in replies} == {(503, "storage_unavailable")}
    assert not any(word in reply.text for reply in replies for word in SECRETS)
    reason = "the bucket refuses the gateway" if how == "refusing" else "the bucket does not serve now"
    assert (health["status"], health["files"]) == ("degraded", {"store": "s3", "healthy": False, "reason": reason})
    assert (await ann._client.get("/resources", headers=ann.headers)).json()["resources"] == [kept]

    bucket.server.open()
    assert bucket.objects() == objects
    assert (await content(ann, kept)).content == b"kept"
    assert (await ann.upload("notes.txt", NOTES)).status_code == 201
    health = (await house.client.get("/health")).json()
    assert (health["status"], health["files"]) == ("ok", {"store": "s3", "healthy": True, "reason": None})
    house.clock.forward(seconds=LEASE_MS / 1000 + 1)
    await house.attachments.sweep()
    assert len(await rows(database)) == len(before) + 2  # the resource and its mapping; no intents


async def test_an_object_that_comes_late_after_a_503_is_removed_by_the_sweep(
    ann: User, house: House, bucket: Bucket, database: AnyDatabase
) -> None:
    """The bucket had taken it, only its answer was lost."""
    put: list[str] = []

    def lose_the_answer(method: str, _: str) -> tuple[int, str] | None:
        put.append(method)
        return (500, "InternalError") if method == "PUT" else None

    bucket.server.plan = lose_the_answer
    assert (await ann.upload("notes.txt", NOTES)).status_code == 503
    bucket.server.open()
    [(folder,)] = await database.fetch("SELECT folder FROM file_intents")
    await house.blobs.put({f"{folder}/notes.txt": [NOTES]})
    assert len(bucket.objects()) == 1
    assert await house.attachments.sweep() == 0  # its lease has not run out
    house.clock.forward(seconds=LEASE_MS / 1000 + 1)
    assert await house.attachments.sweep() == 1
    assert bucket.objects() == {}
    assert await rows(database) == []


async def test_what_a_killed_gateway_left_in_the_bucket_is_swept_by_another(
    ann: User, house: House, other_house: House, bucket: Bucket, database: AnyDatabase
) -> None:
    await house.attachments.intents.open("ann", ["ann/resources/1"])
    await house.attachments.close()  # killed: its leases are not renewed any more
    await house.blobs.put({"ann/resources/1/half.txt": [b"half"]})
    assert await other_house.attachments.sweep() == 0
    other_house.clock.forward(seconds=LEASE_MS / 1000 + 1)
    assert await other_house.attachments.sweep() == 1
    assert bucket.objects() == {}
    assert await rows(database) == []


async def test_an_upload_is_acknowledged_only_when_its_object_is_there(
    ann: User, bucket: Bucket, database: AnyDatabase
) -> None:
    """While the bucket has not answered there is no row, and there is an intent."""
    bucket.server.hush()
    uploading = asyncio.create_task(ann.upload("notes.txt", NOTES))
    async with asyncio.timeout(10):
        while not await database.fetch("SELECT * FROM file_intents"):
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)
    assert not uploading.done()
    assert await database.fetch("SELECT * FROM user_resources") == []
    bucket.server.open()
    assert (await uploading).status_code == 201
    assert len(bucket.objects()) == 1


async def test_an_erased_user_leaves_nothing_and_look_alikes_keep_theirs(house: House, bucket: Bucket) -> None:
    users = [await house.user(user_id) for user_id in ("ann", "anna", "a_n", "axn", "an")]
    for user in users:
        await user.upload("notes.txt", NOTES + user.user_id.encode())
        await user.add(user.says(attached("cat.png", b"cat of " + user.user_id.encode())), chat=user.user_id)
    assert len(bucket.objects()) == 10
    reply = await house.client.delete("/users/ann", headers={"X-Admin-Key": ADMIN_KEY})
    assert reply.status_code == 200, reply.text
    left = [key.partition("/")[0] for key in bucket.objects()]
    assert sorted(left) == sorted(["anna", "a_n", "axn", "an"] * 2)


async def test_an_erasure_while_the_bucket_is_gone_is_503_and_is_finished_later(
    ann: User, house: House, bucket: Bucket
) -> None:
    await ann.upload("notes.txt", NOTES)
    bucket.server.stop()
    reply = await house.client.delete("/users/ann", headers={"X-Admin-Key": ADMIN_KEY})
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "storage_unavailable")
    bucket.server.open()
    assert len(bucket.objects()) == 1
    reply = await house.client.delete("/users/ann", headers={"X-Admin-Key": ADMIN_KEY})
    assert reply.status_code == 200
    assert bucket.objects() == {}


async def test_an_export_holds_the_users_own_files(ann: User, house: House, tmp_path: Path) -> None:
    anna = await house.user("anna")
    await anna.upload("hers.txt", b"hers")
    resource = (await ann.upload("notes.txt", NOTES)).json()["resource"]
    await ann.add(ann.says(attached("cat.png", b"cat")))
    reply = await house.client.get("/users/me/export", headers=ann.headers)
    assert reply.status_code == 200
    with zipfile.ZipFile(io.BytesIO(reply.content)) as archive:
        files = {name: archive.read(name) for name in archive.namelist() if name.startswith("files/")}
        [row] = [json.loads(line) for line in archive.read("resource.jsonl").splitlines()]
    assert files[f"files/resources/{resource['id']}/notes.txt"] == NOTES
    assert sorted(files.values()) == sorted([NOTES, b"cat"])
    assert row["file"] == f"resources/{resource['id']}/notes.txt"
    assert files_of(tmp_path) == []


async def test_a_deleted_resource_keeps_its_object_until_it_is_restored(ann: User, bucket: Bucket) -> None:
    resource = (await ann.upload("notes.txt", NOTES)).json()["resource"]
    await ann._client.delete(f"/resources/{resource['id']}", headers=ann.headers)
    assert (await content(ann, resource)).status_code == 404
    assert len(bucket.objects()) == 1
    await ann.post(f"/resources/{resource['id']}/restore")
    assert (await content(ann, resource)).content == NOTES


async def test_files_that_moved_from_a_folder_to_the_bucket_are_found_there(
    house: House, bucket: Bucket, database: AnyDatabase, tmp_path: Path, upstream: RecordingUpstream
) -> None:
    before = House(database, tmp_path / "before", upstream)
    ann = await before.user("ann")
    resource = (await ann.upload("Plan 季度.txt", NOTES)).json()["resource"]
    await before.close()
    for path in before.storage_root.rglob("*.txt"):  # as a tool that copies folders does
        await house.blobs.put({path.relative_to(before.storage_root).as_posix(): [path.read_bytes()]})
        path.unlink()
    there = at(house, ann)
    assert (await content(there, resource)).content == NOTES
    assert (await there.upload("again.txt", NOTES)).json() == {"resource": resource, "created": False}
    await house.attachments.sweep()
    assert list(bucket.objects()) == [f"ann/resources/{resource['id']}/Plan 季度.txt"]
