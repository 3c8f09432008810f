"""The table is seed 1's to the letter, and the resources that were there before it are filled in."""

import re

import pytest

from memory_gateway.gateway.attachments.service import Attachments
from memory_gateway.gateway.resources import store as resources_store
from memory_gateway.storage.sqlite import SqliteDatabase
from tests.fakes.clock import TurnedClock

MAPPINGS = """
SELECT id, user_id, app_id, session_id, resource_id, content_type, name, internal_uri, source, sha256, created_at,
  deleted_at
FROM memory_attachments ORDER BY id
"""


async def columns(database: SqliteDatabase) -> list[tuple[str, str, int, str | None, int]]:
    return [row[1:] for row in await database.fetch("PRAGMA table_info(memory_attachments)")]


async def indexes(database: SqliteDatabase) -> list[tuple[str, tuple[str, ...]]]:
    rows = await database.fetch("SELECT sql FROM sqlite_schema WHERE tbl_name = 'memory_attachments' ORDER BY sql")
    found = [re.fullmatch(r"CREATE (.*)INDEX \w+\s+ON memory_attachments \((.*)\)", sql or "") for (sql,) in rows]
    return [(match[1].strip(), tuple(match[2].split(", "))) for match in found if match]


@pytest.mark.sqlite
async def test_the_columns_are_the_seeds(database: SqliteDatabase) -> None:
    assert await columns(database) == [
        ("id", "TEXT", 0, None, 1),
        ("user_id", "TEXT", 1, None, 0),
        ("app_id", "TEXT", 1, "'default'", 0),
        ("project_id", "TEXT", 1, "'default'", 0),
        ("session_id", "TEXT", 1, None, 0),
        ("resource_id", "TEXT", 0, None, 0),
        ("content_type", "TEXT", 1, None, 0),
        ("name", "TEXT", 1, None, 0),
        ("internal_uri", "TEXT", 1, None, 0),
        ("source", "TEXT", 1, None, 0),
        ("sha256", "TEXT", 0, None, 0),
        ("created_at", "TIMESTAMP", 1, None, 0),
        ("deleted_at", "TIMESTAMP", 0, None, 0),
    ]


@pytest.mark.sqlite
async def test_the_indexes_are_the_seeds(database: SqliteDatabase) -> None:
    assert await indexes(database) == [
        ("", ("user_id", "session_id", "deleted_at")),
        ("UNIQUE", ("user_id", "session_id", "internal_uri")),
    ]


async def plant(database: SqliteDatabase, resource_id: str, *, user_id: str = "ann", deleted: bool = False) -> None:
    await database.write(
        lambda transaction: transaction.execute(
            resources_store.INSERT,
            {
                "id": resource_id,
                "user_id": user_id,
                "app_id": "app",
                "project_id": "default",
                "session_id": f"resource:{user_id}:{resource_id}",
                "name": "Notes.txt",
                "title": None,
                "content_type": "doc",
                "mime_type": "text/plain",
                "size": 3,
                "sha256": f"hash of {resource_id}",
                "stored_name": "Notes.txt",
                "internal_uri": f"file:///store/{resource_id}/Notes.txt",
                "status": "indexed",
                "created_at": "2026-05-28T20:26:40.000Z",
            },
        )
    )
    if deleted:
        params = {"user_id": user_id, "id": resource_id, "now": "2026-05-29T00:00:00.000Z"}
        await database.write(lambda transaction: transaction.execute(resources_store.SOFT_DELETE, params))


def mapping(resource_id: str, user_id: str = "ann") -> tuple[object, ...]:
    return (
        resource_id,
        user_id,
        "app",
        f"resource:{user_id}:{resource_id}",
        resource_id,
        "doc",
        "Notes.txt",
        f"file:///store/{resource_id}/Notes.txt",
        "resource_upload",
        f"hash of {resource_id}",
        "2026-05-28T20:26:40.000Z",
        None,
    )


async def test_live_resources_are_filled_in_and_deleted_ones_are_not(
    attachments: Attachments, database: SqliteDatabase
) -> None:
    await plant(database, "r1")
    await plant(database, "r2", user_id="anna")
    await plant(database, "r3", deleted=True)
    assert await attachments.backfill() == 2
    assert await database.fetch(MAPPINGS) == [mapping("r1"), mapping("r2", "anna")]


async def test_filling_in_twice_changes_nothing(attachments: Attachments, database: SqliteDatabase) -> None:
    await plant(database, "r1")
    await attachments.backfill()
    assert await attachments.backfill() == 0
    assert await database.fetch(MAPPINGS) == [mapping("r1")]


async def test_a_deleted_mapping_of_a_live_resource_is_live_again(
    attachments: Attachments, database: SqliteDatabase
) -> None:
    await plant(database, "r1")
    await attachments.backfill()
    await database.write(lambda transaction: attachments.soft_delete(transaction, "ann", "r1"))
    assert await attachments.backfill() == 1
    assert await database.fetch(MAPPINGS) == [mapping("r1")]


async def test_a_deleted_mapping_of_a_deleted_resource_stays_deleted(
    attachments: Attachments, database: SqliteDatabase, clock: TurnedClock
) -> None:
    await plant(database, "r1")
    await attachments.backfill()
    await database.write(lambda transaction: attachments.soft_delete(transaction, "ann", "r1"))
    params = {"user_id": "ann", "id": "r1", "now": "2026-05-29T00:00:00.000Z"}
    await database.write(lambda transaction: transaction.execute(resources_store.SOFT_DELETE, params))
    assert await attachments.backfill() == 0
    assert [row[-1] for row in await database.fetch(MAPPINGS)] == ["2026-05-28T20:26:40.000Z"]


@pytest.mark.parametrize("other", ["anna", "a_n", "%"])
async def test_a_mapping_of_another_user_does_not_stand_in(
    other: str, attachments: Attachments, database: SqliteDatabase
) -> None:
    await plant(database, "r1", user_id=other)
    await attachments.backfill()
    await plant(database, "r2")
    assert await attachments.backfill() == 1
