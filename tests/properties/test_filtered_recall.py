"""A search inside a filter ranks as a search in a store that holds nothing else."""

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_gateway.engine.schemas import Method
from tests.engine.conftest import Talk, open_talk
from tests.fakes.embedder import HashEmbedder

WORDS = ["tea", "milk", "lemon", "早报", "设备", "coffee at nine", "the train to Lisbon"]
conversations = st.lists(
    st.tuples(st.integers(0, 3), st.lists(st.sampled_from(WORDS), min_size=1, max_size=4)), min_size=1, max_size=8
)


async def fill(talk: Talk, said: list[tuple[int, list[str]]], kept: set[int]) -> None:
    for session, words in said:
        if session in kept:
            await talk.say(" ".join(words), session=f"chat:{session}")
    if talk.engine._worker is not None:
        await talk.engine._worker.catch_up()


async def answer(talk: Talk, query: str, method: Method, sessions: set[int] | None) -> list[tuple[object, ...]]:
    options: dict[str, Any] = (
        {} if sessions is None else {"filters": {"session_id": {"in": [f"chat:{s}" for s in sorted(sessions)]}}}
    )
    reply = await talk.search(query, method=method, top_k=-1, **options)
    return [
        (
            episode["session_id"],
            round(episode["score"], 9),
            [round(fact["score"], 9) for fact in episode["atomic_facts"]],
        )
        for episode in reply.episodes
    ]


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    conversations,
    st.sets(st.integers(0, 3), min_size=1),
    st.sampled_from(WORDS),
    st.sampled_from(["keyword", "vector", "hybrid"]),
)
async def test_a_filter_ranks_as_a_smaller_store(
    said: list[tuple[int, list[str]]], kept: set[int], query: str, method: Method
) -> None:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        async with open_talk(Path(one), HashEmbedder()) as whole, open_talk(Path(two), HashEmbedder()) as part:
            await fill(whole, said, {0, 1, 2, 3})
            await fill(part, said, kept)
            assert await answer(whole, query, method, kept) == await answer(part, query, method, None)
