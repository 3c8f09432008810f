"""Seed 1's rules for `/memories/add`: what becomes an attachment, where it lies, and who sees it."""

import base64
import hashlib
from pathlib import Path
from typing import Any

import pytest

from memory_gateway.engine.schemas import ContentItem, Message
from memory_gateway.gateway.attachments.schemas import Attachment, StagedAttachments
from memory_gateway.gateway.attachments.service import MAX_URI_CHARACTERS, Attachments
from memory_gateway.kit import files
from memory_gateway.kit.errors import InvalidInput, StorageUnavailable
from memory_gateway.kit.files import file_uri
from memory_gateway.storage.sqlite import SqliteDatabase
from tests.fakes.clock import TurnedClock
from tests.gateway.attachments.conftest import committed

HERE = ("default", "default")
CAT = b"not really a picture"
ROWS = """
SELECT user_id, app_id, project_id, session_id, resource_id, content_type, name, internal_uri, source, sha256,
  created_at, deleted_at
FROM memory_attachments ORDER BY created_at, id
"""
INTENTS = "SELECT user_id, folder, claimed FROM file_intents"


def said(*items: ContentItem) -> Message:
    return Message("ann", "user", 1_780_000_000_000, list(items))


def picture(content: bytes = CAT, name: str | None = "cat.png") -> ContentItem:
    return ContentItem("image", base64=base64.b64encode(content).decode(), ext="png", name=name)


def link(uri: str = "https://pictures.example/cat.png", name: str | None = None) -> ContentItem:
    return ContentItem("image", uri=uri, name=name)


def all_files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file())


async def add(
    attachments: Attachments,
    *items: ContentItem,
    user_id: str = "ann",
    session_id: str = "chat:1",
    app_id: str = "default",
) -> StagedAttachments:
    staged = await attachments.stage(user_id, app_id, "default", session_id, (said(*items),))
    await committed(attachments, staged)
    return staged


async def live(attachments: Attachments, user_id: str = "ann", *session_ids: str) -> list[Attachment]:
    found = await attachments.for_sessions(user_id, *HERE, list(session_ids) or ["chat:1"])
    return [attachment for one in found.values() for attachment in one]


async def test_text_makes_no_attachment(attachments: Attachments, database: SqliteDatabase, storage_root: Path) -> None:
    messages = (Message("ann", "user", 1, "see cat.png"), said(ContentItem("text", text="see cat.png")))
    staged = await attachments.stage("ann", *HERE, "chat:1", messages)
    await committed(attachments, staged)
    assert staged == StagedAttachments("ann")
    assert await database.fetch(ROWS) == []
    assert not storage_root.exists()


async def test_a_uri_is_mapped_as_it_is(attachments: Attachments, database: SqliteDatabase, storage_root: Path) -> None:
    await add(attachments, link("file:///home/tom/x/simple%20image.png"))
    assert await database.fetch(ROWS) == [
        (
            "ann",
            "default",
            "default",
            "chat:1",
            None,
            "image",
            "simple image.png",
            "file:///home/tom/x/simple%20image.png",
            "memory_add_uri",
            None,
            "2026-05-28T20:26:40.000Z",
            None,
        )
    ]
    assert not storage_root.exists()


async def test_base64_is_kept_and_mapped(
    attachments: Attachments, database: SqliteDatabase, storage_root: Path
) -> None:
    staged = await add(attachments, picture(name="Meine Katze?.png"))
    path = storage_root / "ann" / "memory_attachments" / staged.rows[0].id / "Meine Katze_.png"
    assert path.read_bytes() == CAT
    assert all_files(storage_root) == [path]
    digest = hashlib.sha256(CAT).hexdigest()
    assert await database.fetch(ROWS) == [
        (
            "ann",
            "default",
            "default",
            "chat:1",
            None,
            "image",
            "Meine Katze?.png",
            file_uri(path),
            "memory_add_base64",
            digest,
            "2026-05-28T20:26:40.000Z",
            None,
        )
    ]
    assert await database.fetch(INTENTS) == []


async def test_a_uri_wins_over_base64(attachments: Attachments, database: SqliteDatabase, storage_root: Path) -> None:
    item = ContentItem("image", uri="https://a.example/b.png", base64="this is not even base64", name="cat.png")
    await add(attachments, item)
    assert [row[7:10] for row in await database.fetch(ROWS)] == [("https://a.example/b.png", "memory_add_uri", None)]
    assert not storage_root.exists()


async def test_all_items_of_all_messages_count(attachments: Attachments) -> None:
    messages = (said(link("https://a.example/1.png"), picture()), said(link("https://a.example/2.png")))
    await committed(attachments, await attachments.stage("ann", *HERE, "chat:1", messages))
    assert [one.name for one in await live(attachments)] == ["1.png", "cat.png", "2.png"]


@pytest.mark.parametrize("code", ["", "QUI", "QUI=\n", "!!!!", "data:image/png;base64,QUI="])
async def test_bad_base64_names_its_field_and_writes_nothing(
    code: str, attachments: Attachments, database: SqliteDatabase, storage_root: Path
) -> None:
    messages = (said(picture()), said(ContentItem("text", text="x"), ContentItem("image", base64=code, ext="png")))
    with pytest.raises(InvalidInput) as fault:
        await attachments.stage("ann", *HERE, "chat:1", messages)
    assert fault.value.field == "messages.1.content.1.base64"
    assert not storage_root.exists()
    assert await database.fetch(INTENTS) == []


async def test_an_endless_uri_is_refused(attachments: Attachments) -> None:
    with pytest.raises(InvalidInput) as fault:
        await attachments.stage("ann", *HERE, "chat:1", (said(link("https://a.example/" + "x" * MAX_URI_CHARACTERS)),))
    assert fault.value.field == "messages.0.content.0.uri"


async def test_a_discarded_add_leaves_no_file_no_row_and_no_intent(
    attachments: Attachments, database: SqliteDatabase, storage_root: Path
) -> None:
    kept = await add(attachments, picture(b"kept"))
    staged = await attachments.stage("ann", *HERE, "chat:1", (said(picture(b"new"), picture(b"kept"), link()),))
    assert len(all_files(storage_root)) == 2
    await attachments.discard(staged)
    assert [path.read_bytes() for path in all_files(storage_root)] == [b"kept"]
    assert [row[9] for row in await database.fetch(ROWS)] == [kept.rows[0].sha256]
    assert await database.fetch(INTENTS) == []


async def test_the_same_bytes_and_name_reuse_file_and_row(
    attachments: Attachments, database: SqliteDatabase, storage_root: Path
) -> None:
    await add(attachments, picture(), picture())
    await add(attachments, picture())
    assert len(all_files(storage_root)) == 1
    assert len(await database.fetch(ROWS)) == 1


@pytest.mark.parametrize(
    ("item", "where"),
    [
        (picture(b"other bytes"), {}),
        (picture(name="other name.png"), {}),
        (picture(), {"session_id": "chat:2"}),
        (picture(), {"user_id": "anna"}),
        (picture(), {"app_id": "other"}),
    ],
)
async def test_other_bytes_name_session_user_or_app_get_a_file_of_their_own(
    item: ContentItem, where: dict[str, str], attachments: Attachments, storage_root: Path
) -> None:
    await add(attachments, picture())
    await add(attachments, item, **where)
    assert len(all_files(storage_root)) == 2


async def test_two_adds_at_once_map_the_same_file_once(
    attachments: Attachments, database: SqliteDatabase, storage_root: Path, clock: TurnedClock
) -> None:
    first = await attachments.stage("ann", *HERE, "chat:1", (said(picture()),))
    second = await attachments.stage("ann", *HERE, "chat:1", (said(picture()),))
    await committed(attachments, first)
    await committed(attachments, second)
    assert [row[7] for row in await database.fetch(ROWS)] == [first.rows[0].internal_uri]
    clock.forward(seconds=120)
    assert await attachments.sweep() == 1
    assert [file_uri(path) for path in all_files(storage_root)] == [first.rows[0].internal_uri]


async def test_a_uri_that_is_mapped_again_is_one_row_under_its_latest_name(attachments: Attachments) -> None:
    await add(attachments, link(name="first.png"))
    await add(attachments, link(name="second.png"))
    assert [one.name for one in await live(attachments)] == ["second.png"]


async def test_a_uri_that_is_mapped_again_after_a_delete_is_live_again(
    attachments: Attachments, database: SqliteDatabase
) -> None:
    session_id = "resource:ann:r1"
    await add(attachments, link(), session_id=session_id)
    await database.write(lambda transaction: attachments.soft_delete(transaction, "ann", "r1"))
    assert await live(attachments, "ann", session_id) == []
    await add(attachments, link(), session_id=session_id)
    assert [one.name for one in await live(attachments, "ann", session_id)] == ["cat.png"]


async def test_sessions_without_attachments_are_not_in_the_answer(attachments: Attachments) -> None:
    await add(attachments, link())
    assert await attachments.for_sessions("ann", *HERE, []) == {}
    found = await attachments.for_sessions("ann", *HERE, ["chat:1", "chat:2"])
    assert {session_id: [one.name for one in held] for session_id, held in found.items()} == {"chat:1": ["cat.png"]}


@pytest.mark.parametrize("other", ["anna", "an", "a_n", "axn", "%", "a%", "_nn"])
async def test_another_users_attachments_of_the_same_session_are_not_seen(other: str, attachments: Attachments) -> None:
    await add(attachments, link("https://a.example/mine.png"), picture())
    await add(attachments, link("https://a.example/theirs.png"), picture(), user_id=other)
    assert [one.name for one in await live(attachments)] == ["mine.png", "cat.png"]
    assert [one.name for one in await live(attachments, other)] == ["theirs.png", "cat.png"]
    uris = {one.internal_uri for user in ("ann", other) for one in await live(attachments, user)}
    assert len(uris) == 4


async def test_a_kept_file_is_not_seen_from_another_app(attachments: Attachments) -> None:
    await add(attachments, picture(), app_id="other")
    assert await live(attachments) == []


async def test_the_same_uri_in_two_apps_is_seen_from_both(attachments: Attachments) -> None:
    """The seed's unique index leaves room for one row."""
    await add(attachments, link(), app_id="other")
    await add(attachments, link())
    assert [one.name for one in await live(attachments)] == ["cat.png"]
    found = await attachments.for_sessions("ann", "other", "default", ["chat:1"])
    assert [one.name for one in found["chat:1"]] == ["cat.png"]


@pytest.mark.parametrize(
    "name", ["../../etc/x", "..\\x", "x" * 300 + ".png", "re\u0301sume\u0301.png", "CON", "🎉.png"]
)
async def test_a_file_never_leaves_its_folder_and_keeps_its_name_as_a_label(
    name: str, attachments: Attachments, storage_root: Path
) -> None:
    staged = await add(attachments, picture(name=name))
    [path] = all_files(storage_root.parent / "storage")
    assert path.parent == storage_root / "ann" / "memory_attachments" / staged.rows[0].id
    assert [one.name for one in await live(attachments)] == [name]


async def test_a_full_disk_is_said_and_leaves_nothing(
    attachments: Attachments, database: SqliteDatabase, storage_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: files.NewFile, chunk: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.NewFile, "write", full)
    with pytest.raises(StorageUnavailable):
        await attachments.stage("ann", *HERE, "chat:1", (said(picture()),))
    assert all_files(storage_root) == []
    assert await database.fetch(INTENTS) == []


async def test_an_export_tells_every_mapping_and_an_erasure_takes_only_the_users_own(
    attachments: Attachments, database: SqliteDatabase
) -> None:
    for user_id in ("ann", "anna", "%"):
        await add(attachments, link(), user_id=user_id)
    exported: list[dict[str, Any]] = [row async for row in attachments.export("ann")]
    assert [(row["kind"], row["name"], row["internal_uri"]) for row in exported] == [
        ("attachment", "cat.png", "https://pictures.example/cat.png")
    ]
    await attachments.erase("ann")
    assert [row async for row in attachments.export("ann")] == []
    assert [row[0] for row in await database.fetch(ROWS)] == ["anna", "%"]


async def test_an_add_under_way_while_its_user_is_erased_writes_no_row(
    attachments: Attachments, database: SqliteDatabase
) -> None:
    staged = await attachments.stage("ann", *HERE, "chat:1", (said(picture()),))
    await attachments.erase("ann")
    with pytest.raises(StorageUnavailable):
        await committed(attachments, staged)
    assert await database.fetch(ROWS) == []
