"""A search inside a filter ranks as a search in a store that holds nothing else."""

import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from memory_gateway.engine.schemas import Message, Method
from tests.engine.conftest import START_MS, Talk, open_talk
from tests.fakes.embedder import HashEmbedder

WORDS = ["tea", "milk", "lemon", "早报", "设备", "coffee at nine", "the train to Lisbon", "for Ben", "which one?"]
NAMES = {"ann": "Ann Lee", "ben": "Ben Frost", "ben2": "Ben Lee", "xiao": "小王"}
DAYS = ["", " on May 28", " yesterday", " 5月29日", " last week", " in 2026", " when?"]
NAMED = ["", "Ann and ", "Ben's ", "Ben Lee ", "小王的"]
METHODS: list[Method] = ["keyword", "vector", "hybrid", "agentic"]


class Said(msgspec.Struct, frozen=True):
    """One message: its session, who says it, how many hours after the one before it."""

    session: int
    sender: str
    hours: int
    text: str


def conversations(senders: list[str]) -> st.SearchStrategy[list[Said]]:
    texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
    one = st.builds(
        Said, st.integers(0, 3), st.sampled_from(senders), st.sampled_from([0, 0, 1, 20, 200, 8_000]), texts
    )
    return st.lists(one, min_size=1, max_size=8)


async def fill(talk: Talk, said: list[Said], kept: set[int]) -> None:
    time_ms = START_MS
    for number, one in enumerate(said):
        time_ms += one.hours * 3_600_000
        if one.session in kept:
            message = Message(one.sender, "user", time_ms + number, one.text, sender_name=NAMES[one.sender])
            await talk.add(message, session=f"chat:{one.session}")
    assert talk.engine._worker is not None
    await talk.engine._worker.catch_up()
    talk.clock.forward(seconds=86_400)


async def answer(talk: Talk, query: str, method: Method, sessions: set[int] | None) -> list[tuple[object, ...]]:
    options: dict[str, Any] = (
        {} if sessions is None else {"filters": {"session_id": {"in": [f"chat:{s}" for s in sorted(sessions)]}}}
    )
    reply = await talk.search(query, method=method, top_k=-1, radius=0.1, **options)
    return [
        (
            episode["session_id"],
            episode["score"],
            [(fact["content"], fact["score"]) for fact in episode["atomic_facts"]],
        )
        for episode in reply.episodes
    ]


async def same_answer(said: list[Said], kept: set[int], query: str, method: Method) -> None:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        async with open_talk(Path(one), HashEmbedder()) as whole, open_talk(Path(two), HashEmbedder()) as part:
            await fill(whole, said, {0, 1, 2, 3})
            await fill(part, said, kept)
            assert await answer(whole, query, method, kept) == await answer(part, query, method, None)


asked = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
queries = st.builds("{}{}".format, asked, st.sampled_from(DAYS))
sessions = st.sets(st.integers(0, 3), min_size=1)
slowly = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("method", METHODS)
@slowly
@given(conversations(["ann"]), sessions, queries)
@example([Said(0, "ann", 0, "tea"), Said(1, "ann", 100_000, "tea")], {0}, "tea 5月28日")
async def test_a_filter_ranks_as_a_smaller_store(method: Method, said: list[Said], kept: set[int], query: str) -> None:
    await same_answer(said, kept, query, method)


@pytest.mark.parametrize("method", METHODS)
@slowly
@given(conversations(list(NAMES)), sessions, st.sampled_from(NAMED), queries)
@example([Said(0, "ann", 0, "tea"), Said(1, "xiao", 0, "tea")], {0}, "小王的", "tea")
@example([Said(0, "ben", 0, "tea"), Said(1, "ann", 0, "for Ben")], {1}, "Ben's ", "milk")
async def test_a_filter_ranks_as_a_smaller_store_also_where_somebody_is_named(
    method: Method, said: list[Said], kept: set[int], name: str, query: str
) -> None:
    await same_answer(said, kept, f"{name}{query}", method)
