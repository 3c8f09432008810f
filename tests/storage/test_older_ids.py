"""A data folder of the release before ids said where their rows lie."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memory_gateway.kit.ids import shard_key
from memory_gateway.memory_service.entries.service import Entries
from memory_gateway.memory_service.thinking.service import Thinking
from memory_gateway.storage import migrate as migrating
from memory_gateway.storage.migrate import migrate, migrations
from memory_gateway.storage.port import Transaction
from memory_gateway.storage.sqlite import SqliteDatabase
from tests.fakes.clock import TurnedClock

LOGS = {"0198-one": "ann", "0198-two": "张三", "0198-three": "ann"}
INSERT_LOG = """
INSERT INTO thinking_logs (id, user_id, content, tool_calls, tool_call_count, content_length, created_at)
VALUES (:id, :user_id, 'old', '[]', 0, 3, '2026-01-01T00:00:00.000Z')
"""


@pytest.fixture
async def older(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SqliteDatabase]:
    database = SqliteDatabase(tmp_path / "old.db")
    before = [migration for migration in migrations() if migration.number < 12]
    monkeypatch.setattr(migrating, "migrations", lambda _: before)
    await migrate(database, TurnedClock())
    monkeypatch.undo()
    yield database
    await database.close()


async def test_its_logs_are_found_by_user_and_by_id(older: SqliteDatabase) -> None:
    async def fill(transaction: Transaction) -> None:
        for log_id, user_id in LOGS.items():
            await transaction.execute(INSERT_LOG, {"id": log_id, "user_id": user_id})

    await older.write(fill)
    await migrate(older, TurnedClock())
    keys = await older.fetch("SELECT id, shard_key FROM thinking_logs")
    assert dict(keys) == {log_id: shard_key(user_id) for log_id, user_id in LOGS.items()}
    thinking = Thinking(older, TurnedClock())
    for log_id, user_id in LOGS.items():
        assert (await thinking.get(log_id)).user_id == user_id
    logs, total = await thinking.list("ann", 10, 0)
    assert (sorted(log.id for log in logs), total) == (["0198-one", "0198-three"], 2)
    await thinking.erase("ann")
    assert (await thinking.stats(None)).total_logs == 1


async def test_its_entries_are_found_by_id(older: SqliteDatabase) -> None:
    async def fill(transaction: Transaction) -> None:
        await transaction.execute("INSERT INTO memory_users (user_no, user_id) VALUES (7, 'ann')")
        await transaction.execute(
            "INSERT INTO memory_entries VALUES (:key, 7, 5, 1, 'event', NULL, 1, 1, 1, 0, '2026-01-01T00:00:00.000Z',"
            " NULL, '0198-old', 'manual', '', '', '', 1, '[]', 'old', 'old', 'old')",
            {"key": 7 << 32 | 1},
        )

    await older.write(fill)
    await migrate(older, TurnedClock())
    entries = Entries(older, TurnedClock(), lambda: "holder")
    found = await entries.get("0198-old")
    await entries.close()
    assert (found.user_id, found.content) == ("ann", "old")
