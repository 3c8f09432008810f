"""Features of turns: pure functions over a space's arrays, each giving one number a turn.

Statistics are exact for what may be seen: document frequencies and mean lengths count the visible turns only, so a
search inside a filter ranks as a search in a store that holds nothing else.
"""

import functools
import operator
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from memory_gateway.engine.columns import Links, Mask, Scores, Turns

K1 = 1.2
B = 0.75
_SHORTEST = (K1 + 1) / (1 + K1 * (1 - B))  # what one occurrence counts for as a turn's length goes to nothing

Postings = NDArray[np.void]
Term = tuple[Turns, Scores]
"""Where a term stands, turns or windows, and how often in each."""


def seen_term(postings: Postings, visible: Mask) -> Term:
    """A term in the visible turns."""
    turns = postings["turn"].astype(np.int64)
    seen = visible[turns]
    return turns[seen], postings["frequency"][seen].astype(np.float64)


class Norms(Struct, frozen=True):
    """What BM25 needs of the visible turns, whatever is asked.

    What to divide by, for a turn alone and for the window of three neighbouring turns around it, and how many visible
    turns are in that window, at least 1.
    """

    turn: Scores
    window: Scores
    in_window: Scores
    visible: Mask
    count: int


def norms_of(lengths: Scores, links: Links, visible: Mask) -> Norms:
    """The norms of turns of these lengths."""
    around = in_window(np.where(visible, lengths, 0.0), links)
    return Norms(
        turn=_norms(lengths, visible),
        window=_norms(around, visible),
        in_window=np.maximum(in_window(visible.astype(np.float64), links), 1.0),
        visible=visible,
        count=int(visible.sum()),
    )


def _norms(lengths: Scores, visible: Mask) -> Scores:
    mean = lengths[visible].mean() if visible.any() else 0.0
    return np.asarray(K1 * (1 - B + B * lengths / max(mean, 1.0)))


class Evidence(Struct, frozen=True):
    """What one term adds to the turns that hold it, to those in whose window it stands, and to how much of the query
    stands there. A space that does not change says the same of a term in every search.

    ``places``: one after the other the turns, and the windows twice, moved on by the count of turns and again.
    """

    places: Turns
    points: Scores
    turns: int
    rarity: float
    window_rarity: float

    @property
    def size(self) -> int:
        """In bytes."""
        return self.places.nbytes + self.points.nbytes


def evidence_of(term: Term, norms: Norms, links: Links) -> Evidence:
    """BM25 (Robertson and Zaragoza 2009) of the term, for the turns and for the windows."""
    turns, frequency = term
    if not len(turns):
        return Evidence(turns, frequency, 0, 0.0, 0.0)
    count = len(norms.turn)
    rarity = inverse_frequency(len(turns), norms.count)
    points = rarity * frequency * (K1 + 1) / (frequency + norms.turn[turns])
    around = in_window(_spread(turns, frequency, count), links)
    windows = np.flatnonzero((around > 0) & norms.visible)
    held = around[windows]
    window_rarity = inverse_frequency(len(windows), norms.count)
    window_points = window_rarity * (K1 + 1) * held / (held + norms.window[windows])
    return Evidence(
        places=np.concatenate((turns, windows + count, windows + 2 * count)),
        points=np.concatenate((points, window_points, np.full(len(windows), rarity))),
        turns=len(turns),
        rarity=rarity,
        window_rarity=window_rarity,
    )


class Words(Struct, frozen=True):
    """Of each turn, 0..1, so that different queries and stores compare.

    BM25 of the turn and of the window around it, as shares of what a very short turn with every term scores, and which
    share of the query stands in the window, rare terms counting for more.
    """

    turn: Scores
    window: Scores
    coverage: Scores


def words_of(terms: Sequence[Evidence], near: Sequence[bool], count: int) -> Words:
    """What the distinct terms of a query say of ``count`` turns; one that stands nowhere counts for nothing.

    ``near``: which of the terms count in windows as well.
    """
    around = [term for term, counts in zip(terms, near, strict=True) if counts]
    most = (
        _total([term.rarity for term in terms]) * _SHORTEST,
        _total([term.window_rarity for term in around]) * _SHORTEST,
        _total([term.rarity for term in around]),
    )
    ends = [None if counts else term.turns for term, counts in zip(terms, near, strict=True)]
    summed = np.bincount(
        np.concatenate([term.places[:end] for term, end in zip(terms, ends, strict=True)]),
        weights=np.concatenate([term.points[:end] for term, end in zip(terms, ends, strict=True)]),
        minlength=3 * count,
    )
    shares = np.minimum(summed.reshape(3, count) / np.array([[part or 1.0] for part in most]), 1.0)
    return Words(*shares)


def _total(rarities: Sequence[float]) -> float:
    """Added up one by one, as the points are, so that no share passes 1; `sum` rounds otherwise on newer Pythons."""
    return functools.reduce(operator.add, rarities, 0.0)


def _spread(turns: Turns, frequency: Scores, count: int) -> Scores:
    held = np.zeros(count)
    held[turns] = frequency
    return held


def inverse_frequency(holding: int, count: int) -> float:
    """The rarity of a term that ``holding`` of ``count`` turns hold; never negative."""
    return float(np.log1p((count - holding + 0.5) / (holding + 0.5)))


def in_window(scores: Scores, links: Links) -> Scores:
    """The sum over each turn and its two neighbours."""
    padded = _padded(scores)
    return scores + padded[links.previous] + padded[links.after]


def neighbour(scores: Scores, towards: Turns) -> Scores:
    """The score of each turn's neighbour, 0 where it has none."""
    return _padded(scores)[towards]


def _padded(scores: Scores) -> Scores:
    """With a 0 at the end: the place that -1 takes, which says that there is no neighbour."""
    padded = np.zeros(len(scores) + 1)
    padded[:-1] = scores
    return padded


def window_mean(scores: Scores, norms: Norms, links: Links) -> Scores:
    """The mean score of the windows that hold each turn: its own and its visible neighbours'."""
    return in_window(np.where(norms.visible, scores, 0.0), links) / norms.in_window


def both_windows(own: Scores, after: Turns) -> Scores:
    """From the cosine of each turn together with the one before it, to the mean of the two such windows that hold it.

    NaN where there is no vector yet.
    """
    following = np.append(own, np.nan)[after]
    return np.where(np.isnan(following), own, np.where(np.isnan(own), following, (own + following) / 2))


def segment_best(points: Scores, links: Links, counted: Mask) -> Scores:
    """For each turn the best of its segment among the counted, and nothing below 0."""
    best = np.zeros(links.segment_count)
    np.maximum.at(best, links.segments[counted], points[counted])
    return np.asarray(best[links.segments], dtype=np.float64)
