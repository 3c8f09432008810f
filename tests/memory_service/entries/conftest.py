from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memory_gateway.memory_service.entries import indexing, nearest
from tests.fakes.entries import Room, open_room


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with open_room(tmp_path) as opened:
        yield opened


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Indexes and logs in so small parts that a handful of entries meets every turn of theirs."""
    monkeypatch.setattr(indexing, "SEGMENT_ENTRIES", 3)
    monkeypatch.setattr(indexing, "SEGMENTS_IN_BLOCK", 2)
    monkeypatch.setattr(indexing, "_MOST_GARBAGE", 4)
    monkeypatch.setattr(nearest, "_LEAST_GARBAGE", 4)
    monkeypatch.setattr(nearest, "_CHUNK_BYTES", 200)
