"""From features to points, from points to scores."""

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_gateway.embeddings.cosine_scale import CosineScale
from memory_gateway.engine.columns import Links
from memory_gateway.engine.fusion import (
    EXACT,
    HYBRID,
    KEYWORD,
    Features,
    Weights,
    points_of,
    score_of,
    standardised,
    strongest,
    with_context,
    with_exact,
)

SHARES = ("turn", "window", "coverage")
MASKS = ("speaker", "day", "period", "timed", "question", "answer")
BOTH = pytest.mark.parametrize("weights", [HYBRID, KEYWORD], ids=["hybrid", "keyword"])


def features(count: int, **known: Any) -> Features:
    """Nothing is known but what is given."""
    absent: dict[str, Any] = {name: np.zeros(count) for name in (*SHARES, "length")}
    absent |= {name: np.zeros(count, dtype=bool) for name in MASKS}
    return Features(**(absent | known))


@st.composite
def any_features(draw: st.DrawFn) -> Features:
    count = draw(st.integers(1, 6))

    def array(values: st.SearchStrategy[Any]) -> np.ndarray:
        return np.array(draw(st.lists(values, min_size=count, max_size=count)))

    known: dict[str, Any] = {name: array(st.floats(0, 1)) for name in SHARES}
    known |= {name: array(st.booleans()) for name in MASKS}
    known["length"] = array(st.integers(0, 400)).astype(np.float64)
    known["cosine"] = draw(st.sampled_from([None, array(st.floats(-5, 8) | st.just(np.nan))]))
    return Features(**known)


@BOTH
@given(any_features())
def test_points_are_the_weighted_sum_of_each_turns_features(weights: Weights, given_signs: Features) -> None:
    points = points_of(given_signs, weights)
    for turn in range(len(points)):
        expected = weights.length * np.log(1 + given_signs.length[turn])
        for name in (*SHARES, *MASKS):
            expected += getattr(weights, name) * float(getattr(given_signs, name)[turn])
        if given_signs.cosine is not None:
            cosine = given_signs.cosine[turn]
            expected += weights.cosine * (3.0 * given_signs.coverage[turn] if np.isnan(cosine) else cosine)
        assert points[turn] == pytest.approx(expected)


def test_a_missing_vector_is_taken_by_the_words_that_stand_there() -> None:
    coverage = np.array([0.0, 1.0, 1.0])
    known = features(3, coverage=coverage, cosine=np.array([np.nan, np.nan, 1.0]))
    words = points_of(features(3, coverage=coverage), HYBRID)
    assert (points_of(known, HYBRID) - words).tolist() == pytest.approx([0.0, 3.0, 1.0])


def test_points_leave_the_signs_as_they_were() -> None:
    given_signs = features(2, cosine=np.array([1.0, np.nan]), turn=np.array([0.5, 0.25]))
    points_of(given_signs, HYBRID)
    assert given_signs.turn.tolist() == [0.5, 0.25]
    assert given_signs.cosine is not None
    assert np.isnan(given_signs.cosine[1])


def test_each_sign_that_speaks_for_a_turn_has_a_weight_above_nothing() -> None:
    for weights in (HYBRID, KEYWORD):
        signed = {name: getattr(weights, name) for name in ("speaker", "day", "period", "timed", "answer", "window")}
        assert min(signed.values()) > 0
        assert weights.question < 0 < weights.steep
    assert HYBRID.cosine > KEYWORD.cosine == 0


@BOTH
@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=8))
def test_a_score_keeps_the_order_of_the_points_and_stays_below_an_exact_match(
    weights: Weights, points: list[float]
) -> None:
    scores = score_of(np.array(sorted(points)), weights)
    assert (np.diff(scores) >= 0).all()
    assert scores.min() > 0
    assert scores.max() < EXACT


@BOTH
def test_more_points_are_a_better_score_and_the_middle_is_half(weights: Weights) -> None:
    scores = score_of(weights.middle + weights.steep * np.linspace(-10.0, 10.0, 41), weights)
    assert (np.diff(scores) > 0).all()
    assert scores[20] == pytest.approx(0.999 / 2)
    odds = score_of(np.array([weights.middle, weights.middle + weights.steep]), weights) / 0.999
    assert odds[1] / (1 - odds[1]) == pytest.approx(np.e)


def test_only_counted_turns_give_a_share_to_their_neighbours_and_their_segment() -> None:
    weights = msgspec.structs.replace(HYBRID, neighbours=0.1, segment=0.5)
    links = Links(np.array([-1, 0, 1, -1]), np.array([1, 2, -1, -1]), np.array([0, 0, 0, 1]), 2)
    points = np.array([10.0, 1.0, 4.0, 2.0])
    every = with_context(points, np.array([True, True, True, True]), links, weights)
    shared = [10.1, 2.4, 4.1, 2.0]
    assert every.tolist() == pytest.approx([shared[0] + 5.05, shared[1] + 5.05, shared[2] + 5.05, 3.0])
    fewer = with_context(points, np.array([False, True, True, True]), links, weights)
    assert fewer[1:].tolist() == pytest.approx([1.4 + 2.05, 4.1 + 2.05, 3.0]), "the first gives nothing"


def test_a_segment_of_bad_turns_takes_no_points_away() -> None:
    links = Links(np.array([-1]), np.array([-1]), np.array([0]), 1)
    assert with_context(np.array([-3.0]), np.array([True]), links, HYBRID).tolist() == [-3.0]


def test_a_cosine_is_measured_from_what_unrelated_texts_have() -> None:
    spreads = standardised(np.array([0.75, 0.8, 0.7, np.nan]), CosineScale(unrelated=0.75, spread=0.025))
    assert spreads[:3].tolist() == pytest.approx([0.0, 2.0, -2.0])
    assert np.isnan(spreads[3])


def test_an_exact_match_is_better_than_any_points() -> None:
    scores = with_exact(score_of(np.array([1e9, -1e9]), HYBRID), np.array([False, True]))
    assert scores[1] == EXACT > scores[0]


@given(st.lists(st.sampled_from([np.nan, 0.0, 0.25, 0.5, 1.0]), max_size=12), st.integers(1, 12))
def test_the_strongest_are_the_best_in_order_later_turns_first_among_equals(scores: list[float], count: int) -> None:
    held = [turn for turn, score in enumerate(scores) if score > 0]
    expected = sorted(held, key=lambda turn: (-scores[turn], -turn))[:count]
    assert strongest(np.array(scores), count).tolist() == expected
