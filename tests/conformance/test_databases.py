"""The same data give the same answers on SQLite and on PostgreSQL: same hits, same order, same scores."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.conformance.conftest import SEEDED, embedded
from tests.conformance.corpus import DAY, START
from tests.conformance.world import METHODS, World
from tests.fakes.databases import database_url

QUERIES = (
    "note",
    "Where does the falcon service move to?",
    "budget on Monday",
    "茶在厨房",
    "port 9000 last Friday",
    "who noted the budget",
    "%",
    "nothing of this was ever said",
)
FILTERS: tuple[dict[str, Any], ...] = (
    {},
    {"session_id": "chat:tea"},
    {"timestamp": {"gte": START + DAY}},
    {"OR": [{"session_id": "chat:group"}, {"session_id": "chat:late"}]},
)
OWNERS: tuple[dict[str, Any], ...] = ({"user_id": "ann"}, {"user_id": "ben"}, {"agent_id": "bot"})


@pytest.fixture
async def worlds(
    postgres_url: str, seeded_database: None, seeded_folder: Path, tmp_path: Path
) -> AsyncIterator[tuple[World, World]]:
    address = database_url(postgres_url, SEEDED)
    async with embedded(seeded_folder) as on_sqlite, embedded(tmp_path, address) as on_postgres:
        yield World("embedded", on_sqlite), World("embedded", on_postgres)


@pytest.mark.parametrize("owner", OWNERS, ids=str)
@pytest.mark.parametrize("method", METHODS)
async def test_searches_give_the_same_to_the_last_bit(
    worlds: tuple[World, World], method: str, owner: dict[str, Any]
) -> None:
    found = 0
    for filters in FILTERS:
        if "agent_id" in owner and filters:
            continue
        for query in QUERIES:
            asked = {"filters": filters or msgspec.UNSET, "method": method, **owner}
            one, other = [msgspec.to_builtins(await world.search(query, **asked)) for world in worlds]
            assert one == other, (query, filters)
            found += len(one["episodes"]) + len(one["agent_cases"]) + len(one["agent_skills"])
    assert found


@pytest.mark.parametrize("memory_type", ["episode", "agent_case"])
async def test_lists_give_the_same(worlds: tuple[World, World], memory_type: str) -> None:
    owner: dict[str, Any] = {"user_id": "ann"} if memory_type == "episode" else {"agent_id": "bot"}
    one, other = [msgspec.to_builtins(await world.get(memory_type, **owner)) for world in worlds]
    assert one == other
    assert one["total_count"] > 0
