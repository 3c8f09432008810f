"""Seed 1's own list of tests, over HTTP, on both kinds of upstream."""

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from memory_gateway.engine.schemas import SearchReply
from memory_gateway.kit.errors import UpstreamTimeout
from memory_gateway.kit.files import file_uri
from memory_gateway.storage.sqlite import SqliteDatabase
from tests.fakes import items
from tests.fakes.house import House
from tests.fakes.upstream import EMBEDDED_LIKE, EVEROS_LIKE, RecordingUpstream

CAT = b"\x89PNG\r\n\x1a\nnot really a cat"
CODE = base64.b64encode(CAT).decode()
MAPPINGS = "SELECT user_id, session_id, name, internal_uri, source FROM memory_attachments WHERE deleted_at IS NULL"


@pytest.fixture(params=[EVEROS_LIKE, EMBEDDED_LIKE], ids=["everos", "embedded"])
async def house(request: pytest.FixtureRequest, database: SqliteDatabase, tmp_path: Path) -> AsyncIterator[House]:
    house = House(database, tmp_path, RecordingUpstream(request.param), allowed_uri_hosts=("pictures.example:443",))
    yield house
    await house.close()


def answers(house: House, *episodes: dict[str, Any]) -> None:
    """The next search's upstream reply."""
    assert isinstance(house.upstream, RecordingUpstream)
    house.upstream.reply("search", SearchReply(episodes=list(episodes)))


def episode(session_id: str, text: str, user_id: str = "ann", **more: Any) -> dict[str, Any]:
    return {**items.episode("e1", user_id=user_id, session_id=session_id, text=text), **more}


async def test_an_upload_creates_its_attachment_mapping(house: House) -> None:
    ann = await house.user("ann")
    resource = (await ann.upload("notes.txt", b"notes")).json()["resource"]
    path = house.storage_root / "ann" / "resources" / resource["id"] / "notes.txt"
    assert await house.database.fetch(MAPPINGS) == [
        ("ann", f"resource:ann:{resource['id']}", "notes.txt", file_uri(path), "resource_upload")
    ]


@pytest.mark.parametrize(
    ("text", "shown"), [("It stands in [DOC: Notes.TXT].", ["notes.txt"]), ("It stands in the notes.", [])]
)
async def test_a_search_for_a_resource_gives_the_true_uri_only_where_raw_has_the_file_name(
    text: str, shown: list[str], house: House
) -> None:
    ann = await house.user("ann")
    resource = (await ann.upload("notes.txt", b"notes")).json()["resource"]
    answers(house, episode(resource["session_id"], text))
    [result] = await ann.search("notes")
    assert [attachment["name"] for attachment in result["attachments"]] == shown
    path = house.storage_root / "ann" / "resources" / resource["id"] / "notes.txt"
    for attachment in result["attachments"]:
        assert attachment == {"type": "doc", "name": "notes.txt", "internal_uri": file_uri(path)}
    assert result["resource_uri"] == f"resource://{resource['id']}"


async def test_a_uri_in_an_add_creates_a_mapping(house: House) -> None:
    ann = await house.user("ann")
    item = {"type": "image", "uri": "https://pictures.example/x/board.png"}
    assert (await ann.add(ann.says([item]))).status_code == 200
    assert await house.database.fetch(MAPPINGS) == [("ann", "chat:1", "board.png", item["uri"], "memory_add_uri")]


async def test_base64_in_an_add_is_kept_and_creates_a_mapping(house: House) -> None:
    ann = await house.user("ann")
    item = {"type": "image", "base64": CODE, "ext": "png", "name": "cat.png"}
    assert (await ann.add(ann.says([item]))).status_code == 200
    [path] = [path for path in house.storage_root.rglob("*") if path.is_file()]
    assert path.read_bytes() == CAT
    assert path.parent.parent == house.storage_root / "ann" / "memory_attachments"
    assert await house.database.fetch(MAPPINGS) == [("ann", "chat:1", "cat.png", file_uri(path), "memory_add_base64")]
    answers(house, episode("chat:1", "Ann showed [IMAGE: cat.png]."))
    [result] = await ann.search("cat")
    assert result["attachments"] == [{"type": "image", "name": "cat.png", "internal_uri": file_uri(path)}]


async def test_the_upstream_gets_the_messages_as_they_came(house: House) -> None:
    ann = await house.user("ann")
    message = ann.says(
        [{"type": "image", "base64": CODE, "ext": "png", "name": "cat.png"}, {"type": "text", "text": "!"}]
    )
    await ann.add(message)
    assert isinstance(house.upstream, RecordingUpstream)
    assert house.upstream.sent("add")[0]["messages"] == [message]


async def test_a_failed_add_leaves_neither_file_nor_mapping(house: House) -> None:
    ann = await house.user("ann")
    assert isinstance(house.upstream, RecordingUpstream)
    house.upstream.fail("add", UpstreamTimeout("too slow"))
    items_ = [
        {"type": "image", "base64": CODE, "ext": "png"},
        {"type": "image", "uri": "https://pictures.example/b.png"},
    ]
    assert (await ann.add(ann.says(items_))).status_code == 504
    assert [path for path in house.storage_root.rglob("*") if path.is_file()] == []
    assert await house.database.fetch(MAPPINGS) == []


async def test_base64_fields_of_raw_are_not_scanned(house: House) -> None:
    ann = await house.user("ann")
    await ann.add(ann.says([{"type": "image", "base64": CODE, "ext": "png", "name": "cat.png"}]))
    answers(house, episode("chat:1", "Ann showed something.", extras=[{"base64": "cat.png"}]))
    [result] = await ann.search("something")
    assert result["attachments"] == []


async def test_another_users_attachment_of_the_same_session_is_not_returned(house: House) -> None:
    ann, anna = await house.user("ann"), await house.user("anna")
    await ann.add(ann.says([{"type": "image", "base64": CODE, "ext": "png", "name": "cat.png"}]), chat="1")
    answers(house, episode("chat:1", "cat.png", user_id="anna"))
    for result in await anna.search("cat"):
        assert result["attachments"] == []
    assert await house.attachments.for_sessions("anna", "default", "default", ["chat:1"]) == {}


async def test_a_deleted_resource_shows_no_attachment(house: House) -> None:
    ann = await house.user("ann")
    resource = (await ann.upload("notes.txt", b"notes")).json()["resource"]
    await house.client.delete(f"/resources/{resource['id']}", headers=ann.headers)
    assert await house.database.fetch(MAPPINGS) == []


async def test_the_list_and_the_detail_keep_their_outer_uri(house: House) -> None:
    ann = await house.user("ann")
    resource = (await ann.upload("notes.txt", b"notes")).json()["resource"]
    for path in ("/resources", f"/resources/{resource['id']}"):
        reply = await house.client.get(path, headers=ann.headers)
        assert f'"resource://{resource["id"]}"' in reply.text
        assert "file:" not in reply.text
