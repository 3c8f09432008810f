"""Delete, restore, and what a search may know of a user's resources."""

from typing import Any

import httpx
import pytest

from memory_gateway.gateway.attachments.matching import FileNames
from memory_gateway.gateway.resources.schemas import UploadFields
from memory_gateway.kit.errors import NotFound, StorageUnavailable
from memory_gateway.storage.sqlite import SqliteDatabase
from tests.fakes.front_door import FrontDoor
from tests.fakes.process import Process

HERE = ("default", "default")


async def upload(
    client: httpx.AsyncClient,
    headers: dict[str, str],
    content: bytes = b"notes",
    name: str = "notes.txt",
    **fields: str,
) -> dict[str, Any]:
    reply = await client.post("/resources", headers=headers, data=fields, files={"file": (name, content)})
    resource: dict[str, Any] = reply.json()["resource"]
    return resource


async def shown(process: Process, resource: dict[str, Any], user_id: str = "ann") -> list[str]:
    """The attachments that a search result with this resource's name would show."""
    session_id = resource["session_id"]
    found = await process.attachments.for_sessions(user_id, *HERE, [session_id])
    raw = {"episode": f"[DOC: {resource['name']}] and more"}
    return [view.name for view in FileNames(found.get(session_id, [])).named_in(raw)]


async def test_a_delete_marks_the_resource_and_its_mapping(
    client: httpx.AsyncClient, ann: dict[str, str], process: Process, front: FrontDoor
) -> None:
    resource = await upload(client, ann)
    assert await shown(process, resource) == ["notes.txt"]
    front.clock.forward(seconds=5)
    reply = await client.delete(f"/resources/{resource['id']}", headers=ann)
    assert (reply.status_code, reply.json()) == (200, {**resource, "deleted_at": "2026-05-28T20:26:45.000Z"})
    assert await shown(process, resource) == []
    assert (await client.get(f"/resources/{resource['id']}/content", headers=ann)).status_code == 404


async def test_a_second_delete_changes_nothing(
    client: httpx.AsyncClient, ann: dict[str, str], front: FrontDoor
) -> None:
    resource = await upload(client, ann)
    first = await client.delete(f"/resources/{resource['id']}", headers=ann)
    front.clock.forward(seconds=5)
    second = await client.delete(f"/resources/{resource['id']}", headers=ann)
    assert (second.status_code, second.json()) == (200, first.json())
    acts = [act["action"] async for act in front.audit.export("ann") if act["object_type"] == "resource"]
    assert acts == ["upload", "delete"]


async def test_a_restore_undoes_a_delete(client: httpx.AsyncClient, ann: dict[str, str], process: Process) -> None:
    resource = await upload(client, ann)
    await client.delete(f"/resources/{resource['id']}", headers=ann)
    for _ in range(2):
        reply = await client.post(f"/resources/{resource['id']}/restore", headers=ann)
        assert (reply.status_code, reply.json()) == (200, resource)
    assert await shown(process, resource) == ["notes.txt"]
    assert (await client.get(f"/resources/{resource['id']}/content", headers=ann)).content == b"notes"


async def test_a_restore_is_409_while_the_same_bytes_live_under_another_id(
    client: httpx.AsyncClient, ann: dict[str, str], process: Process
) -> None:
    first = await upload(client, ann)
    await client.delete(f"/resources/{first['id']}", headers=ann)
    second = await upload(client, ann)
    reply = await client.post(f"/resources/{first['id']}/restore", headers=ann)
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "conflict")
    assert await shown(process, first) == []
    await client.delete(f"/resources/{second['id']}", headers=ann)
    assert (await client.post(f"/resources/{first['id']}/restore", headers=ann)).status_code == 200


async def test_upload_delete_upload_is_live_and_history_shows_the_deletion(
    client: httpx.AsyncClient, ann: dict[str, str], process: Process
) -> None:
    first = await upload(client, ann)
    await client.delete(f"/resources/{first['id']}", headers=ann)
    second = await upload(client, ann)
    assert (await client.get(f"/resources/{first['id']}", headers=ann)).json()["deleted_at"] is not None
    assert await process.resources.live_sessions("ann", *HERE) == [second["session_id"]]
    assert await process.resources.deleted_sessions("ann", *HERE) == {first["session_id"]}
    assert await shown(process, second) == ["notes.txt"]


async def test_sessions_are_those_of_one_user_app_and_project_oldest_first(
    client: httpx.AsyncClient, ann: dict[str, str], anna: dict[str, str], process: Process, front: FrontDoor
) -> None:
    sessions = []
    for number in range(3):
        front.clock.forward(seconds=1)
        sessions.append((await upload(client, ann, bytes([65 + number])))["session_id"])
    await upload(client, ann, app_id="other")
    await upload(client, ann, project_id="other")
    await upload(client, anna)
    assert await process.resources.live_sessions("ann", *HERE) == sessions
    assert await process.resources.deleted_sessions("ann", *HERE) == frozenset()
    assert len(await process.resources.live_sessions("ann", "other", "default")) == 1
    assert await process.resources.live_sessions("an", *HERE) == []


async def test_a_session_leads_to_its_live_resource(
    client: httpx.AsyncClient, ann: dict[str, str], anna: dict[str, str], process: Process
) -> None:
    mine, gone, hers = await upload(client, ann), await upload(client, ann, b"2"), await upload(client, anna)
    await client.delete(f"/resources/{gone['id']}", headers=ann)
    asked = [mine["session_id"], gone["session_id"], hers["session_id"], "chat:1", f"resource:ann:{hers['id']}"]
    assert await process.resources.by_session("ann", asked) == {mine["session_id"]: mine["id"]}
    assert await process.resources.by_session("ann", []) == {}


@pytest.mark.parametrize("other", ["anna", "a_n", "axn", "%", "Ann-2"])
async def test_look_alike_users_do_not_see_each_other(other: str, process: Process, database: SqliteDatabase) -> None:
    ids = {}
    for user_id in ("ann", other):
        async with process.resources.receive(user_id, f"{user_id}.txt") as incoming:
            await incoming.write(b"same bytes")
            ids[user_id] = (await process.resources.keep(incoming, UploadFields())).resource.id
    for user_id, stranger in (("ann", other), (other, "ann")):
        page = await process.resources.page(user_id, limit=50, cursor=None, app_id=None, project_id=None)
        assert [resource.name for resource in page.resources] == [f"{user_id}.txt"]
        for call in (process.resources.get, process.resources.live, process.resources.delete):
            with pytest.raises(NotFound):
                await call(user_id, ids[stranger])
    await process.resources.erase(other)
    assert (await process.resources.get("ann", ids["ann"])).deleted_at is None
    with pytest.raises(NotFound):
        await process.resources.get(other, ids[other])


async def test_an_export_tells_every_resource_and_where_its_file_lies(
    client: httpx.AsyncClient, ann: dict[str, str], process: Process, front: FrontDoor
) -> None:
    resource = await upload(client, ann, name="a/b.txt")
    await client.delete(f"/resources/{resource['id']}", headers=ann)
    [row] = [row async for row in process.resources.export("ann")]
    assert row == {
        "kind": "resource",
        **resource,
        "deleted_at": "2026-05-28T20:26:40.000Z",
        "file": f"resources/{resource['id']}/b.txt",
    }
    assert await front.blobs.size(f"ann/{row['file']}") is not None


async def test_an_upload_under_way_while_its_user_is_erased_is_not_kept(process: Process) -> None:
    with pytest.raises(StorageUnavailable):
        async with process.resources.receive("ann", "notes.txt") as incoming:
            await incoming.write(b"notes")
            await process.resources.erase("ann")
            await process.resources.keep(incoming, UploadFields())
    assert process.upstream.calls == []
