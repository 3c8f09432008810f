"""What an upload makes: a file, a row, a mapping, and one message to the upstream."""

import asyncio
import base64
import hashlib
from pathlib import Path
from typing import Any

import httpx
import pytest

from memory_gateway.engine.schemas import AddReply, AddRequest, Caller, ContentItem, DocumentNote, FlushRequest, Message
from memory_gateway.gateway.resources import tries
from memory_gateway.gateway.resources.indexing import Indexer
from memory_gateway.kit.errors import StorageUnavailable, UpstreamRefused, UpstreamTimeout, UpstreamUnreachable
from memory_gateway.kit.files import file_uri
from memory_gateway.storage.sqlite import SqliteDatabase
from tests.fakes.front_door import FrontDoor
from tests.fakes.process import INLINE_INDEX_BYTES, Process
from tests.fakes.upstream import EVEROS_LIKE, Operation, RecordingUpstream
from tests.gateway.conftest import client_of

NOTES = b"The code of the stand-in host is 4471.\n"
BIG = b"All work and no play. " * 100
NOW = "2026-05-28T20:26:40.000Z"
MAPPINGS = """
SELECT user_id, app_id, project_id, session_id, resource_id, content_type, name, internal_uri, source, sha256,
  created_at, deleted_at
FROM memory_attachments ORDER BY created_at, id
"""
ROWS = "SELECT id, status, error FROM user_resources ORDER BY created_at, id"
INTENTS = "SELECT folder FROM file_intents"
DELETE_MAPPINGS = "DELETE FROM memory_attachments WHERE user_id = 'ann'"


async def upload(
    client: httpx.AsyncClient, headers: dict[str, str], content: bytes = NOTES, name: str = "notes.txt", **fields: Any
) -> httpx.Response:
    return await client.post("/resources", headers=headers, data=fields, files={"file": (name, content)})


async def status_of(client: httpx.AsyncClient, headers: dict[str, str], resource_id: str) -> tuple[str, str | None]:
    resource = (await client.get(f"/resources/{resource_id}", headers=headers)).json()
    return resource["status"], resource["error"]


async def settled(client: httpx.AsyncClient, headers: dict[str, str], resource_id: str) -> tuple[str, str | None]:
    async with asyncio.timeout(5):
        while (found := await status_of(client, headers, resource_id))[0] == "stored":
            await asyncio.sleep(0.005)
    return found


def all_files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file())


async def test_an_upload_answers_with_the_resource_and_tells_no_path(
    client: httpx.AsyncClient, ann: dict[str, str], storage_root: Path
) -> None:
    reply = await upload(client, ann, title="Host codes", app_id="home", project_id="p.1")
    assert reply.status_code == 201
    body = reply.json()
    resource_id = body["resource"]["id"]
    assert body == {
        "resource": {
            "id": resource_id,
            "uri": f"resource://{resource_id}",
            "name": "notes.txt",
            "title": "Host codes",
            "content_type": "doc",
            "mime_type": "text/plain",
            "size": len(NOTES),
            "sha256": hashlib.sha256(NOTES).hexdigest(),
            "app_id": "home",
            "project_id": "p.1",
            "session_id": f"resource:ann:{resource_id}",
            "status": "indexed",
            "error": None,
            "created_at": NOW,
            "deleted_at": None,
        },
        "created": True,
    }
    assert str(storage_root) not in reply.text


async def test_the_file_lies_under_its_user_and_id(
    client: httpx.AsyncClient, ann: dict[str, str], storage_root: Path, database: SqliteDatabase
) -> None:
    resource_id = (await upload(client, ann, name="Plan: 季度?.txt")).json()["resource"]["id"]
    path = storage_root / "ann" / "resources" / resource_id / "Plan_ 季度_.txt"
    assert all_files(storage_root) == [path]
    assert path.read_bytes() == NOTES
    assert await database.fetch(INTENTS) == []


async def test_an_upload_makes_its_attachment_mapping(
    client: httpx.AsyncClient, ann: dict[str, str], storage_root: Path, database: SqliteDatabase
) -> None:
    resource = (await upload(client, ann, name="Meine Notizen.txt", app_id="home")).json()["resource"]
    uri = file_uri(storage_root / "ann" / "resources" / resource["id"] / "Meine Notizen.txt")
    assert uri.endswith("/Meine%20Notizen.txt")
    assert await database.fetch(MAPPINGS) == [
        (
            "ann",
            "home",
            "default",
            resource["session_id"],
            resource["id"],
            "doc",
            "Meine Notizen.txt",
            uri,
            "resource_upload",
            resource["sha256"],
            NOW,
            None,
        )
    ]


async def test_the_upstream_gets_one_message_with_the_files_uri_then_a_flush(
    client: httpx.AsyncClient, ann: dict[str, str], upstream: RecordingUpstream, storage_root: Path
) -> None:
    resource = (await upload(client, ann, app_id="home")).json()["resource"]
    path = storage_root / "ann" / "resources" / resource["id"] / "notes.txt"
    uri = file_uri(path)
    message = Message("ann", "user", 1_780_000_000_000, [ContentItem("doc", uri=uri, name="notes.txt")])
    caller = Caller(user_id="ann", own_files={uri: path})
    assert [(call.operation, call.request, call.caller) for call in upstream.calls] == [
        ("add", AddRequest(resource["session_id"], (message,), "home", "default"), caller),
        ("flush", FlushRequest(resource["session_id"], "home", "default"), caller),
    ]


@pytest.mark.parametrize(
    ("name", "content", "kind", "ext"),
    [
        ("notes.TXT", NOTES, "doc", "txt"),
        ("picture", b"\x89PNG\r\n\x1a\n" + b"x" * 30, "image", "png"),
        ("mail", b"From: a@b.c\nSubject: x\nDate: x\nTo: d@e.f\n\nhi", "email", "eml"),
    ],
)
async def test_an_upstream_without_our_disk_gets_base64_and_an_extension(
    name: str, content: bytes, kind: str, ext: str, front: FrontDoor, ann: dict[str, str]
) -> None:
    everos = RecordingUpstream(EVEROS_LIKE)
    process = Process(front, "one", everos)
    async with client_of(process.app()) as client:
        assert (await upload(client, ann, content, name)).status_code == 201
    [body] = everos.sent("add")
    assert body["messages"][0]["content"] == [
        {"type": kind, "base64": base64.b64encode(content).decode(), "ext": ext, "name": name}
    ]
    await process.close()


async def test_the_same_bytes_again_are_the_first_resource(
    client: httpx.AsyncClient, ann: dict[str, str], upstream: RecordingUpstream, storage_root: Path
) -> None:
    first = (await upload(client, ann)).json()["resource"]
    again = await upload(client, ann, name="other name.txt", title="other title")
    assert again.status_code == 200
    assert again.json() == {"resource": first, "created": False}
    assert len(upstream.requests("add")) == 1
    assert len(all_files(storage_root)) == 1


async def test_the_same_bytes_again_make_a_missing_mapping(
    client: httpx.AsyncClient, ann: dict[str, str], database: SqliteDatabase
) -> None:
    await upload(client, ann)
    before = await database.fetch(MAPPINGS)
    await database.write(lambda transaction: transaction.execute(DELETE_MAPPINGS))
    await upload(client, ann)
    assert await database.fetch(MAPPINGS) == before


@pytest.mark.parametrize("lost", ["the file", "the folder", "a part of it"])
async def test_the_same_bytes_again_mend_a_lost_file(
    lost: str,
    client: httpx.AsyncClient,
    ann: dict[str, str],
    anna: dict[str, str],
    upstream: RecordingUpstream,
    storage_root: Path,
    database: SqliteDatabase,
) -> None:
    resource = (await upload(client, ann)).json()["resource"]
    [path] = all_files(storage_root)
    if lost == "a part of it":
        path.write_bytes(NOTES[:5])
    else:
        path.unlink()
    if lost == "the folder":
        path.parent.rmdir()
    await upload(client, anna)
    again = await upload(client, ann, name="other name.txt")
    assert (again.status_code, again.json()) == (200, {"resource": resource, "created": False})
    assert (await client.get(f"/resources/{resource['id']}/content", headers=ann)).content == NOTES
    assert [one for one in all_files(storage_root) if "ann" in one.parts] == [path]
    assert [one.name for one in path.parent.parent.iterdir()] == [resource["id"]]
    assert len(upstream.requests("add")) == 2
    assert await database.fetch(INTENTS) == []


async def test_a_resource_that_failed_for_want_of_its_file_is_read_once_it_is_mended(
    client: httpx.AsyncClient, ann: dict[str, str], upstream: RecordingUpstream, storage_root: Path
) -> None:
    upstream.fail("add", FileNotFoundError("notes.txt"))
    resource = (await upload(client, ann, BIG)).json()["resource"]
    assert (await settled(client, ann, resource["id"]))[0] == "failed"
    [path] = all_files(storage_root)
    path.unlink()
    found: list[bytes] = []

    def read(request: AddRequest) -> AddReply:
        found.append(path.read_bytes())
        return AddReply(1, "accumulated")

    upstream.reply("add", read)
    await upload(client, ann, BIG)
    assert await settled(client, ann, resource["id"]) == ("indexed", None)
    assert found == [BIG]


async def test_a_disk_that_cannot_take_the_mended_file_is_said(
    client: httpx.AsyncClient, ann: dict[str, str], storage_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("No space left on device")

    await upload(client, ann)
    [path] = all_files(storage_root)
    path.unlink()
    monkeypatch.setattr(Path, "hardlink_to", full)
    assert (await upload(client, ann)).status_code == 503
    assert all_files(storage_root) == []


async def test_another_users_same_bytes_are_a_resource_of_their_own(
    client: httpx.AsyncClient, ann: dict[str, str], anna: dict[str, str], upstream: RecordingUpstream
) -> None:
    first = (await upload(client, ann)).json()
    other = (await upload(client, anna)).json()
    assert other["created"] is True
    assert other["resource"]["id"] != first["resource"]["id"]
    assert len(upstream.requests("add")) == 2


@pytest.mark.parametrize("place", [{"app_id": "other"}, {"project_id": "other"}])
async def test_the_same_bytes_elsewhere_are_a_resource_of_their_own(
    place: dict[str, Any], client: httpx.AsyncClient, ann: dict[str, str]
) -> None:
    await upload(client, ann)
    assert (await upload(client, ann, **place)).json()["created"] is True


async def test_after_a_delete_the_same_bytes_are_a_new_resource_and_history_stays(
    client: httpx.AsyncClient, ann: dict[str, str]
) -> None:
    first = (await upload(client, ann)).json()["resource"]
    await client.delete(f"/resources/{first['id']}", headers=ann)
    second = await upload(client, ann)
    assert second.status_code == 201
    assert second.json()["resource"]["id"] != first["id"]
    history = (await client.get(f"/resources/{first['id']}", headers=ann)).json()
    assert history == {**first, "deleted_at": NOW}


async def test_what_the_upstream_refuses_leaves_nothing(
    client: httpx.AsyncClient,
    ann: dict[str, str],
    upstream: RecordingUpstream,
    storage_root: Path,
    database: SqliteDatabase,
) -> None:
    refusal = UpstreamRefused(415, "UNSUPPORTED_FORMAT", "no parser for this")
    upstream.fail("add", refusal)
    reply = await upload(client, ann)
    assert reply.status_code == 415
    assert reply.json()["error"]["details"] == {"upstream": {"code": "UNSUPPORTED_FORMAT"}}
    assert list((storage_root / "ann" / "resources").iterdir()) == []
    for statement in (ROWS, MAPPINGS, INTENTS):
        assert await database.fetch(statement) == []
    assert (await upload(client, ann)).status_code == 201


@pytest.mark.parametrize(
    ("operation", "fault"),
    [
        ("add", UpstreamTimeout("too slow")),
        ("add", UpstreamUnreachable("the connection was lost")),
        ("add", StorageUnavailable("after the first of two batches")),
        ("flush", UpstreamTimeout("too slow")),
        ("flush", UpstreamRefused(500, "INTERNAL_ERROR", "no extraction")),
    ],
)
async def test_what_the_upstream_may_hold_is_kept_and_finished_in_the_background(
    operation: Operation,
    fault: Exception,
    client: httpx.AsyncClient,
    ann: dict[str, str],
    upstream: RecordingUpstream,
    storage_root: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tries, "FIRST_PAUSE_SECONDS", 0.0)
    upstream.fail(operation, fault)
    reply = await upload(client, ann)
    assert (reply.status_code, reply.json()["resource"]["status"]) == (201, "stored")
    assert await settled(client, ann, reply.json()["resource"]["id"]) == ("indexed", None)
    assert len({request.session_id for request in upstream.requests("add")}) == 1
    assert [path.name for path in all_files(storage_root)] == ["notes.txt"]


async def test_a_bug_while_indexing_keeps_the_file_and_tells_no_words(
    client: httpx.AsyncClient, ann: dict[str, str], upstream: RecordingUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tries, "FIRST_PAUSE_SECONDS", 0.0)
    upstream.fail("add", RuntimeError("secret of the house"), times=2)
    resource = (await upload(client, ann)).json()["resource"]
    assert await settled(client, ann, resource["id"]) == ("failed", "internal error")


async def test_an_upload_whose_last_write_fails_is_finished_in_the_background(
    client: httpx.AsyncClient, ann: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unavailable(*_: object) -> None:
        raise StorageUnavailable("not now")

    monkeypatch.setattr(tries, "FIRST_PAUSE_SECONDS", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(Indexer, "settle", unavailable)
        patch.setattr(Indexer, "wake", lambda self: None)
        reply = await upload(client, ann)
    assert (reply.status_code, reply.json()["resource"]["status"]) == (201, "stored")
    await upload(client, ann)
    assert await settled(client, ann, reply.json()["resource"]["id"]) == ("indexed", None)


async def test_a_bigger_file_is_stored_first_and_indexed_later(
    client: httpx.AsyncClient, ann: dict[str, str], upstream: RecordingUpstream
) -> None:
    indexing = upstream.hold("add")
    reply = await upload(client, ann, BIG)
    assert reply.status_code == 201
    resource = reply.json()["resource"]
    assert resource["status"] == "stored"
    indexing.set()
    assert await settled(client, ann, resource["id"]) == ("indexed", None)
    assert [call.operation for call in upstream.calls] == ["add", "flush"]
    assert upstream.requests("add")[0].session_id == resource["session_id"]


@pytest.mark.parametrize(("size", "status"), [(INLINE_INDEX_BYTES, "indexed"), (INLINE_INDEX_BYTES + 1, "stored")])
async def test_the_limit_of_indexing_before_the_answer(
    size: int, status: str, client: httpx.AsyncClient, ann: dict[str, str], upstream: RecordingUpstream
) -> None:
    upstream.delay("add", 0.05)
    assert (await upload(client, ann, b"x" * size)).json()["resource"]["status"] == status


async def test_background_failure_is_told_and_another_upload_tries_again(
    client: httpx.AsyncClient, ann: dict[str, str], upstream: RecordingUpstream, storage_root: Path
) -> None:
    upstream.fail("add", UpstreamRefused(415, "UNSUPPORTED_FORMAT", "no parser for this"))
    resource = (await upload(client, ann, BIG)).json()["resource"]
    assert await settled(client, ann, resource["id"]) == ("failed", "no parser for this")
    assert len(all_files(storage_root)) == 1

    again = await upload(client, ann, BIG)
    assert again.status_code == 200
    assert again.json() == {"resource": {**resource, "status": "stored"}, "created": False}
    assert await settled(client, ann, resource["id"]) == ("indexed", None)
    assert len(upstream.requests("add")) == 2


async def test_a_bug_in_the_background_is_told_without_its_words(
    client: httpx.AsyncClient, ann: dict[str, str], upstream: RecordingUpstream
) -> None:
    upstream.fail("add", RuntimeError("secret of the house"))
    resource = (await upload(client, ann, BIG)).json()["resource"]
    assert await settled(client, ann, resource["id"]) == ("failed", "internal error")
    second = (await upload(client, ann, BIG + b"2")).json()["resource"]
    assert await settled(client, ann, second["id"]) == ("indexed", None)


@pytest.mark.parametrize("content", [NOTES, BIG], ids=["small", "big"])
@pytest.mark.parametrize(("readable", "status"), [(True, "indexed"), (False, "failed")])
async def test_what_could_not_be_read_of_a_file_is_told_and_the_file_is_kept(
    content: bytes,
    readable: bool,
    status: str,
    client: httpx.AsyncClient,
    ann: dict[str, str],
    upstream: RecordingUpstream,
) -> None:
    note = DocumentNote("notes.txt", readable, "only 3 of 5 pages could be read")
    upstream.reply("add", AddReply(1, "accumulated", (note,)))
    resource = (await upload(client, ann, content)).json()["resource"]
    assert await settled(client, ann, resource["id"]) == (status, "only 3 of 5 pages could be read")
    assert (await client.get(f"/resources/{resource['id']}/content", headers=ann)).content == content


@pytest.mark.parametrize("content", [NOTES, BIG])
async def test_identical_uploads_at_once_make_one_resource(
    content: bytes, client: httpx.AsyncClient, ann: dict[str, str], upstream: RecordingUpstream, storage_root: Path
) -> None:
    upstream.delay("add", 0.02)
    replies = await asyncio.gather(*(upload(client, ann, content) for _ in range(5)))
    assert sorted(reply.status_code for reply in replies) == [200, 200, 200, 200, 201]
    assert len({reply.json()["resource"]["id"] for reply in replies}) == 1
    await settled(client, ann, replies[0].json()["resource"]["id"])
    assert len(upstream.requests("add")) == 1
    assert len(all_files(storage_root)) == 1


async def test_an_identical_upload_does_not_trust_one_that_then_fails(
    client: httpx.AsyncClient, ann: dict[str, str], upstream: RecordingUpstream
) -> None:
    upstream.delay("add", 0.02)
    upstream.fail("add", UpstreamRefused(415, "UNSUPPORTED_FORMAT", "no parser for this"))
    replies = await asyncio.gather(*(upload(client, ann) for _ in range(2)))
    assert sorted(reply.status_code for reply in replies) == [201, 415]


async def test_uploads_are_audited(client: httpx.AsyncClient, ann: dict[str, str], front: FrontDoor) -> None:
    resource = (await upload(client, ann)).json()["resource"]
    await upload(client, ann)
    acts = [act async for act in front.audit.export("ann") if act["object_type"] == "resource"]
    assert [(act["action"], act["object_id"]) for act in acts] == [("upload", resource["id"])]
