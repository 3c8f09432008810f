import pytest

from memory_gateway.storage.few import INLINE_ROWS, fetch_few_or_many
from memory_gateway.storage.sqlite import SqliteDatabase
from tests.storage.conftest import INSERT

TEXTS = "SELECT text FROM note WHERE text <> :without ORDER BY id LIMIT :most"


@pytest.mark.parametrize(("number", "reads"), [(0, 0), (INLINE_ROWS, 0), (INLINE_ROWS + 1, 1), (5_000, 1)])
async def test_all_rows_come_and_many_are_read_off_the_event_loop(
    database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch, number: int, reads: int
) -> None:
    texts = [f"note {index}" for index in range(number)]
    await database.write(lambda transaction: transaction.execute_many(INSERT, [{"text": text} for text in texts]))
    read, seen = database.read, []

    async def noted(work: object) -> object:
        seen.append(work)
        return await read(work)  # type: ignore[arg-type]

    monkeypatch.setattr(database, "read", noted)
    assert await fetch_few_or_many(database, TEXTS, {"without": "x"}) == [(text,) for text in texts]
    assert len(seen) == reads
