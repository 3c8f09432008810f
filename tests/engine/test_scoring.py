"""The channels against their formulas written out turn by turn."""

import math
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memory_gateway.engine.columns import POSTING, RECORD, Links, links_of
from memory_gateway.engine.scoring import (
    K1,
    B,
    Evidence,
    Norms,
    both_windows,
    evidence_of,
    norms_of,
    seen_term,
    window_mean,
    words_of,
)

TERMS = ("tea", "milk", "报")
turns = st.lists(st.lists(st.sampled_from(TERMS), max_size=6), min_size=1, max_size=12)


def alone(said: list[list[str]]) -> Links:
    """Each turn in a session of its own."""
    return Links(np.full(len(said), -1), np.full(len(said), -1), np.arange(len(said)), len(said))


def norms(said: list[list[str]], links: Links, visible: np.ndarray) -> Norms:
    return norms_of(np.array([float(len(words)) for words in said]), links, visible)


def evidence(said: list[list[str]], term: str, links: Links, visible: np.ndarray) -> Evidence:
    held = [(number, Counter(words)[term]) for number, words in enumerate(said) if term in words]
    return evidence_of(seen_term(np.array(held, dtype=POSTING), visible), norms(said, links, visible), links)


def rarities(seen: list[list[str]], query: set[str]) -> dict[str, float]:
    holding = {term: sum(term in words for words in seen) for term in query}
    return {term: math.log1p((len(seen) - held + 0.5) / (held + 0.5)) for term, held in holding.items() if held}


def slow_bm25(said: list[list[str]], query: set[str], visible: list[bool]) -> list[float]:
    seen = [words for words, shown in zip(said, visible, strict=True) if shown]
    mean = max(sum(map(len, seen)) / len(seen), 1.0) if seen else 1.0
    rarity = rarities(seen, query)
    most = sum(rarity.values()) * (K1 + 1) / (1 + K1 * (1 - B))
    scores = []
    for words, shown in zip(said, visible, strict=True):
        total = sum(
            rarity[term] * words.count(term) * (K1 + 1) / (words.count(term) + K1 * (1 - B + B * len(words) / mean))
            for term in rarity
            if term in words
        )
        scores.append(min(total / most, 1.0) if shown and most else 0.0)
    return scores


@given(turns, st.sets(st.sampled_from(TERMS), min_size=1), st.data())
def test_bm25_is_the_formula_over_the_visible_turns(
    said: list[list[str]], query: set[str], data: st.DataObject
) -> None:
    visible = data.draw(st.lists(st.booleans(), min_size=len(said), max_size=len(said)))
    terms = [evidence(said, term, alone(said), np.array(visible)) for term in sorted(query)]
    for near in (True, False):
        fast = words_of(terms, [near] * len(terms), len(said)).turn
        np.testing.assert_allclose(fast, slow_bm25(said, query, visible), atol=1e-12)


@given(turns, st.data())
def test_windows_are_a_turn_and_its_visible_neighbours_in_the_session(
    said: list[list[str]], data: st.DataObject
) -> None:
    sessions = data.draw(st.lists(st.integers(0, 2), min_size=len(said), max_size=len(said)))
    visible = np.array(data.draw(st.lists(st.booleans(), min_size=len(said), max_size=len(said))))
    last: dict[int, int] = {}
    records = np.zeros(len(said), dtype=RECORD)
    for number, session in enumerate(sessions):
        records[number]["previous"] = last.get(session, -1) + 1
        last[session] = number
    links = links_of(records)

    def window(number: int) -> list[int]:
        return [n for n in (int(links.previous[number]), number, int(links.after[number])) if n >= 0 and visible[n]]

    windows = [[word for n in window(number) for word in said[n]] for number in range(len(said))]
    terms = [evidence(said, term, links, visible) for term in TERMS]
    found = words_of(terms, [True] * len(terms), len(said))
    np.testing.assert_allclose(found.window, slow_bm25(windows, set(TERMS), visible.tolist()), atol=1e-12)
    rarity = rarities([words for words, shown in zip(said, visible, strict=True) if shown], set(TERMS))
    for number, words in enumerate(windows):
        near = set(words) if visible[number] else set()
        share = sum(rarity[term] for term in rarity if term in near) / (sum(rarity.values()) or 1.0)
        assert math.isclose(found.coverage[number], share)
    scores = np.arange(1.0, len(said) + 1)
    means = window_mean(scores, norms(said, links, visible), links)
    for number in range(len(said)):
        near_turns = window(number)
        expected = sum(scores[n] for n in near_turns) / len(near_turns) if near_turns else 0.0
        assert math.isclose(means[number], expected)


@given(turns, st.sets(st.sampled_from(TERMS), min_size=1), st.data())
def test_evidence_that_is_held_adds_up_to_the_same_bits_as_term_after_term(
    said: list[list[str]], query: set[str], data: st.DataObject
) -> None:
    visible = np.array(data.draw(st.lists(st.booleans(), min_size=len(said), max_size=len(said))))
    near = data.draw(st.lists(st.booleans(), min_size=len(query), max_size=len(query)))
    chain = np.arange(len(said))
    links = Links(chain - 1, np.append(chain[1:], -1), chain * 0, 1)
    terms = [evidence(said, term, links, visible) for term in sorted(query)]
    found = words_of(terms, near, len(said))
    turn, most = np.zeros(len(said)), 0.0
    coverage, most_covered = np.zeros(len(said)), 0.0
    for term, counts in zip(terms, near, strict=True):
        turn[term.places[: term.turns]] += term.points[: term.turns]
        most += term.rarity
        if counts:
            windows = (len(term.places) - term.turns) // 2
            coverage[term.places[term.turns + windows :] - 2 * len(said)] += term.rarity
            most_covered += term.rarity
    shortest = (K1 + 1) / (1 + K1 * (1 - B))
    assert found.turn.tolist() == (np.minimum(turn / (most * shortest), 1.0) if most else turn).tolist()
    assert found.coverage.tolist() == (coverage / most_covered if most_covered else coverage).tolist()


def test_a_turn_without_a_vector_is_known_by_the_window_of_the_next() -> None:
    own = np.array([1.0, 0.0, np.nan, np.nan, 0.5])
    after = np.array([1, 2, 3, 4, -1])
    means = both_windows(own, after)
    assert means[[0, 1, 3, 4]].tolist() == [0.5, 0.0, 0.5, 0.5]
    assert math.isnan(means[2])
