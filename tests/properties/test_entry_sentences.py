"""Nothing that was said gets lost: not in a merge, and not in any order of creates, updates and consolidations."""

from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_gateway.memory_service.entries.merging import merged_content
from memory_gateway.memory_service.entries.sentences import sentence_keys, split_sentences
from tests.fakes.entries import Room, open_room
from tests.properties.entry_texts import base_texts, near

anything = st.text(
    alphabet=st.one_of(
        st.sampled_from("ab .!?;。！？…”’」)\"'\n\r\t\u3000\u0301\u2028A-+好"),
        st.characters(exclude_categories=["Cs"], exclude_characters="\0"),
    ),
    max_size=60,
)
users = (f"user-{number}" for number in count())


@settings(max_examples=500)
@given(anything)
def test_sentences_hold_every_character_and_are_sentences_themselves(text: str) -> None:
    parts = split_sentences(text)
    assert "".join("".join(parts).split()) == "".join(text.split())
    for part in parts:
        assert split_sentences(part) == [part]


@settings(max_examples=500)
@given(anything, anything)
def test_a_merge_holds_the_sentences_of_both_and_begins_with_the_first(content: str, addition: str) -> None:
    merged = merged_content(content, addition)
    assert merged.startswith(content)
    assert sentence_keys(merged) == list(dict.fromkeys([*sentence_keys(content), *sentence_keys(addition)]))
    assert merged_content(merged, addition) == merged_content(merged, content) == merged


@st.composite
def lives(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    texts = near(draw(base_texts))
    kinds = draw(
        st.lists(st.sampled_from(["create"] * 5 + ["update", "consolidate", "delete"]), min_size=3, max_size=15)
    )
    return [(kind, draw(st.integers(0, 20)), draw(texts)) for kind in kinds]


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with open_room(tmp_path) as opened:
        yield opened


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(life=lives())
async def test_every_sentence_is_found_until_it_is_deleted(room: Room, life: list[tuple[Any, ...]]) -> None:
    user = next(users)
    said: set[str] = set()
    for kind, index, text in life:
        stored = await room.stored(user)
        chosen = stored[index % len(stored)] if stored else None
        if kind == "create":
            await room.save(text, user)
            said |= set(split_sentences(text))
        elif kind == "consolidate":
            await room.entries.consolidate(user)
        elif chosen is not None:
            if kind == "update":
                await room.change(chosen["id"], content=text)
                said |= set(split_sentences(text))
            else:
                await room.entries.delete(chosen["id"])
            held_elsewhere = {key for one in await room.stored(user) for key in sentence_keys(one["content"])}
            taken_back = set(sentence_keys(chosen["content"])) - held_elsewhere
            said = {sentence for sentence in said if not taken_back.intersection(sentence_keys(sentence))}
        for sentence in said:
            assert await room.found(sentence, user, limit=1000), sentence
