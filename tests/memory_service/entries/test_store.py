"""No statement walks over more than it has to: neither over others' rows, nor over all of one user's by an index."""

import re

import pytest

from memory_gateway.memory_service.entries import store
from tests.fakes.entries import Room

STATEMENTS = {name: text for name, text in vars(store).items() if name.isupper() and isinstance(text, str)}
BY_KEY = {name for name, text in STATEMENTS.items() if "entry_key" in text.partition("WHERE")[2]} - {
    "LIST",
    "LIST_CATEGORY",
    "UNMARK_UNINDEXED",
}


@pytest.mark.sqlite
@pytest.mark.parametrize("name", sorted(STATEMENTS))
async def test_a_statement_is_served_by_a_key(room: Room, name: str) -> None:
    text = STATEMENTS[name]
    params = dict.fromkeys(re.findall(r":(\w+)", text), 1)
    plan = [row[3] for row in await room.database.fetch(f"EXPLAIN QUERY PLAN {text}", params)]
    assert not [step for step in plan if step.startswith("SCAN") or "ORDER BY" in step]
    if name in BY_KEY:
        assert plan[-1].startswith("SEARCH memory_entries USING INTEGER PRIMARY KEY")


def test_the_statements_by_key_are_known() -> None:
    assert {"SCAN", "CANDIDATES", "ENTRY", "TEXTS", "CONTENTS"} < BY_KEY
