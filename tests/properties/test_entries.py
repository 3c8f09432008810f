"""Entries against their brute-force twin: any order of creates, updates, deletions, consolidations and queries."""

from collections.abc import AsyncIterator
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from memory_gateway.kit.clock import rfc3339
from memory_gateway.memory_service.entries import indexing, nearest
from tests.fakes.clock import TurnedClock
from tests.fakes.entries import Room, open_room
from tests.fakes.simple_entries import SimpleEntries, SimpleEntry
from tests.properties.entry_texts import base_texts, near

fields = st.fixed_dictionaries(
    {},
    optional={
        "importance": st.integers(1, 10),
        "priority": st.integers(0, 3),
        "category": st.sampled_from(["knowledge", "event", "personal_info"]),
        "ends_in": st.integers(1, 5),
    },
)


KINDS = ["create"] * 8 + ["update"] * 4 + ["consolidate"] * 2 + ["delete", "query", "wait", "restart", "other process"]


@st.composite
def operations(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    """Names of what `Both` does, with what it takes."""
    texts = near(draw(base_texts))
    takes: dict[str, tuple[st.SearchStrategy[Any], ...]] = {
        "create": (texts, fields),
        "update": (st.integers(0, 20), texts),
        "delete": (st.integers(0, 20),),
        "query": (texts,),
    }
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=6, max_size=24))
    return [(kind, *(draw(taken) for taken in takes.get(kind, ()))) for kind in kinds]


class Both:
    """One user in the real room, which may be that of two processes, and in the twin."""

    def __init__(self, rooms: list[Room], user: str) -> None:
        self.rooms = rooms
        self.user = user
        self.twin = SimpleEntries()
        self.ids: dict[int, str] = {}

    @property
    def now_ms(self) -> int:
        return self.rooms[0].clock()

    async def do(self, kind: str, *rest: Any) -> None:
        await getattr(self, kind.replace(" ", "_"))(*rest)

    async def create(self, text: str, given_fields: dict[str, Any]) -> None:
        chosen = dict(given_fields)
        ends_in = chosen.pop("ends_in", None)
        ends_ms = None if ends_in is None else self.now_ms + 1000 * ends_in
        number, similarity = self.twin.create(SimpleEntry(0, text, expires_ms=ends_ms, **chosen), self.now_ms)
        if ends_ms is not None:
            chosen["expires_at"] = rfc3339(ends_ms)
        saved = await self.rooms[0].save(text, self.user, **chosen)
        assert saved.merged == (similarity is not None)
        assert saved.similarity == (None if similarity is None else float(similarity))
        assert self.ids.setdefault(number, saved.memory.id) == saved.memory.id
        assert saved.memory.content == self.twin.entries[number].content
        event("merged" if saved.merged else "new")
        if similarity is not None and similarity < 1:
            event("merged at the threshold" if similarity == Fraction(3, 4) else "merged by likeness")

    async def update(self, index: int, text: str) -> None:
        live = self.twin.live(self.now_ms)
        if live:
            entry = live[index % len(live)]
            self.twin.entries[entry.number] = SimpleEntry(
                entry.number, text, entry.importance, entry.priority, entry.category, entry.expires_ms
            )
            await self.rooms[0].change(self.ids[entry.number], content=text)

    async def delete(self, index: int) -> None:
        numbers = sorted(self.twin.entries)
        if numbers:
            number = numbers[index % len(numbers)]
            del self.twin.entries[number]
            await self.rooms[0].entries.delete(self.ids[number])

    async def consolidate(self) -> None:
        merged = self.twin.consolidate(self.now_ms)
        assert await self.rooms[0].entries.consolidate(self.user) == merged
        event("consolidated some" if merged else "nothing to consolidate")

    async def query(self, text: str) -> None:
        for query in (text, text[:2], text[len(text) // 2 :][:1]):
            expected = self.twin.found(query, self.now_ms)
            found, total = await self.rooms[0].query(query, self.user, limit=1000)
            assert [entry.id for entry in found] == [self.ids[number] for number in expected]
            assert total == len(expected)

    async def wait(self) -> None:
        self.rooms[0].clock.forward(seconds=2)

    async def restart(self) -> None:
        self.rooms[0] = Room(self.rooms[0].database, self.rooms[0].clock)

    async def other_process(self) -> None:
        self.rooms.reverse()

    async def compare(self) -> None:
        expected = {
            self.ids[one.number]: (one.content, one.importance, one.priority, one.category)
            for one in self.twin.entries.values()
        }
        stored = await self.rooms[0].stored(self.user)
        assert expected == {
            one["id"]: (one["content"], one["importance"], one["priority"], one["category"]) for one in stored
        }
        counts = await self.rooms[0].entries.categories(self.user)
        live = self.twin.live(self.now_ms)
        assert sum(counts.values()) == len(live) == (await self.rooms[0].entries.list(self.user))[1]


@pytest.fixture
async def rooms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[Room]]:
    """Two processes on one file, with indexes and logs in parts so small that every turn of theirs is met."""
    monkeypatch.setattr(indexing, "SEGMENT_ENTRIES", 3)
    monkeypatch.setattr(indexing, "SEGMENTS_IN_BLOCK", 2)
    monkeypatch.setattr(indexing, "_MOST_GARBAGE", 4)
    monkeypatch.setattr(nearest, "_LEAST_GARBAGE", 4)
    monkeypatch.setattr(nearest, "_CHUNK_BYTES", 200)
    clock = TurnedClock()
    async with open_room(tmp_path, clock) as one, open_room(tmp_path, clock) as other:
        yield [one, other]


users = (f"user-{number}" for number in count())


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(script=operations())
async def test_every_decision_is_that_of_comparing_everything_with_everything(
    rooms: list[Room], script: list[tuple[Any, ...]]
) -> None:
    both = Both(list(rooms), next(users))
    for operation in script:
        await both.do(*operation)
    await both.compare()
