"""The channels against their formulas written out turn by turn."""

import math
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memory_gateway.engine.columns import POSTING, following
from memory_gateway.engine.scoring import (
    K1,
    B,
    bm25,
    cosine,
    window_lengths,
    window_mean,
    window_postings,
)

TERMS = ("tea", "milk", "报")
turns = st.lists(st.lists(st.sampled_from(TERMS), max_size=6), min_size=1, max_size=12)


def postings_of(said: list[list[str]], term: str) -> np.ndarray:
    held = [(number, Counter(words)[term]) for number, words in enumerate(said) if term in words]
    return np.array(held, dtype=POSTING)


def slow_bm25(said: list[list[str]], query: set[str], visible: list[bool]) -> list[float]:
    seen = [words for words, shown in zip(said, visible, strict=True) if shown]
    mean = max(sum(map(len, seen)) / len(seen), 1.0) if seen else 1.0
    rarity = {}
    for term in query:
        holding = sum(term in words for words in seen)
        rarity[term] = math.log1p((len(seen) - holding + 0.5) / (holding + 0.5))
    most = sum(rarity.values()) * (K1 + 1) / (1 + K1 * (1 - B))
    scores = []
    for words, shown in zip(said, visible, strict=True):
        total = sum(
            rarity[term] * words.count(term) * (K1 + 1) / (words.count(term) + K1 * (1 - B + B * len(words) / mean))
            for term in query
            if term in words
        )
        scores.append(min(total / most, 1.0) if shown and most else 0.0)
    return scores


@given(turns, st.sets(st.sampled_from(TERMS), min_size=1), st.data())
def test_bm25_is_the_formula_over_the_visible_turns(
    said: list[list[str]], query: set[str], data: st.DataObject
) -> None:
    visible = data.draw(st.lists(st.booleans(), min_size=len(said), max_size=len(said)))
    lengths = np.array([float(len(words)) for words in said])
    fast = bm25([postings_of(said, term) for term in sorted(query)], lengths, np.array(visible))
    np.testing.assert_allclose(fast, slow_bm25(said, query, visible), atol=1e-12)


@given(turns, st.data())
def test_windows_are_a_turn_and_its_visible_neighbours_in_the_session(
    said: list[list[str]], data: st.DataObject
) -> None:
    sessions = data.draw(st.lists(st.integers(0, 2), min_size=len(said), max_size=len(said)))
    visible = np.array(data.draw(st.lists(st.booleans(), min_size=len(said), max_size=len(said))))
    last: dict[int, int] = {}
    stored = np.zeros(len(said), dtype=np.uint32)
    for number, session in enumerate(sessions):
        stored[number] = last.get(session, -1) + 1
        last[session] = number
    previous, after = stored.astype(np.int64) - 1, following(stored)

    def window(number: int) -> list[int]:
        return [n for n in (int(previous[number]), number, int(after[number])) if n >= 0 and visible[n]]

    lengths = np.array([float(len(words)) for words in said])
    assert window_lengths(lengths, previous, after, visible).tolist() == [
        sum(len(said[n]) for n in window(number)) for number in range(len(said))
    ]
    gathered = window_postings(postings_of(said, "tea"), previous, after, visible)
    expected = [
        (number, sum(said[n].count("tea") for n in window(number))) for number in range(len(said)) if visible[number]
    ]
    assert gathered.tolist() == [pair for pair in expected if pair[1]]
    scores = np.arange(1.0, len(said) + 1)
    means = window_mean(scores, previous, after, visible)
    for number in range(len(said)):
        near = window(number)
        assert math.isclose(means[number], sum(scores[n] for n in near) / len(near) if near else 0.0)


def test_a_turn_without_a_vector_has_no_cosine_and_does_not_spoil_its_neighbours() -> None:
    vectors = np.array([[1.0, 0.0], [0.0, 1.0]], dtype=np.float16)
    query = np.array([1.0, 0.0], dtype=np.float32)
    after = np.array([1, 2, -1])
    scores = cosine(vectors, query, after)
    assert scores[:2].tolist() == [0.5, 0.0]
    assert math.isnan(scores[2])
