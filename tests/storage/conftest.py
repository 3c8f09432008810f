from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memory_gateway.storage.port import Transaction
from memory_gateway.storage.sqlite import SqliteDatabase

CREATE = "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT UNIQUE)"
INSERT = "INSERT INTO note (text) VALUES (:text)"
TEXTS = "SELECT text FROM note ORDER BY id"


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
    opened = SqliteDatabase(tmp_path / "test.db")
    await create_notes(opened)
    yield opened
    await opened.close()


async def create_notes(database: SqliteDatabase) -> None:
    async def create(transaction: Transaction) -> None:
        await transaction.execute(CREATE)

    await database.write(create)
