"""The channels: pure functions over a space's arrays, each giving one number a turn.

Statistics are exact for what may be seen: document frequencies and mean lengths count the visible turns only, so a
search inside a filter ranks as a search in a store that holds nothing else.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memory_gateway.engine.columns import Mask, Scores, Turns

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


def bm25(terms: Sequence[Term], lengths: Scores, visible: Mask) -> Scores:
    """BM25 (Robertson and Zaragoza 2009) of each turn, as a share of what a very short turn with every term scores.

    0..1, so that different queries and stores compare. ``terms``: the distinct ones of the query; one that stands
    nowhere counts for nothing.
    """
    scores = np.zeros(len(lengths))
    count = int(visible.sum())
    if not count:
        return scores
    norms = K1 * (1 - B + B * lengths / max(lengths[visible].mean(), 1.0))
    most = 0.0
    for turns, frequency in terms:
        if len(turns):
            rarity = inverse_frequency(len(turns), count)
            most += rarity
            scores[turns] += rarity * frequency * (K1 + 1) / (frequency + norms[turns])
    return np.minimum(scores / (most * _SHORTEST), 1.0) if most else scores


def coverage(terms: Sequence[Term], windows: Sequence[Term], visible: Mask) -> Scores:
    """Which share of the query stands in the window around each turn, rare terms counting for more. 0..1."""
    scores = np.zeros(len(visible))
    count = int(visible.sum())
    most = 0.0
    for (turns, _), (around, _) in zip(terms, windows, strict=True):
        if len(turns):
            rarity = inverse_frequency(len(turns), count)
            most += rarity
            scores[around] += rarity
    return scores / most if most else scores


def inverse_frequency(holding: int, count: int) -> float:
    """The rarity of a term that ``holding`` of ``count`` turns hold; never negative."""
    return float(np.log1p((count - holding + 0.5) / (holding + 0.5)))


def in_windows(term: Term, previous: Turns, after: Turns, visible: Mask) -> Term:
    """From the turns that hold a term to the windows of three neighbouring turns that hold it."""
    turns, frequency = term
    spread = np.concatenate([turns, previous[turns], after[turns]])
    inside = spread >= 0
    held = np.bincount(spread[inside], np.concatenate([frequency] * 3)[inside], len(visible))
    windows = np.flatnonzero((held > 0) & visible).astype(np.int64)
    return windows, held[windows].astype(np.float64)


def window_lengths(lengths: Scores, previous: Turns, after: Turns, visible: Mask) -> Scores:
    """How many terms the window around each turn holds."""
    own = np.where(visible, lengths, 0.0)
    return own + neighbour(own, previous) + neighbour(own, after)


def neighbour(scores: Scores, towards: Turns) -> Scores:
    """The score of each turn's neighbour, 0 where it has none."""
    return np.where(towards >= 0, scores[towards], 0.0) if len(scores) else scores


def window_mean(scores: Scores, previous: Turns, after: Turns, visible: Mask) -> Scores:
    """The mean score of the windows that hold each turn: its own and its neighbours'."""
    own = np.where(visible, scores, 0.0)
    weight = visible.astype(np.float64)
    total = own + neighbour(own, previous) + neighbour(own, after)
    count = weight + neighbour(weight, previous) + neighbour(weight, after)
    return np.divide(total, count, out=np.zeros_like(total), where=count > 0)


def both_windows(own: Scores, after: Turns) -> Scores:
    """From the cosine of each turn together with the one before it, to the mean of the two such windows that hold it.

    NaN where there is no vector yet.
    """
    following = np.where(after >= 0, own[after], np.nan) if len(after) else own
    return np.where(np.isnan(following), own, np.where(np.isnan(own), following, (own + following) / 2))


def segment_best(points: Scores, segments: Turns, counted: Mask) -> Scores:
    """For each turn the best of its segment among the counted, and nothing below 0."""
    best = np.zeros(int(segments.max(initial=0)) + 1)
    np.maximum.at(best, segments[counted], points[counted])
    return np.asarray(best[segments], dtype=np.float64)
