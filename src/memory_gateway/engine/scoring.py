"""The channels: pure functions over a space's arrays, each giving one score a turn.

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


def bm25(postings: Sequence[Postings], lengths: Scores, visible: Mask) -> Scores:
    """BM25 (Robertson and Zaragoza 2009) of each turn, as a share of what a very short turn with every term scores.

    0..1, so that different queries and stores compare. ``postings`` hold, for each distinct query term, (turn,
    frequency) records.
    """
    scores = np.zeros(len(lengths))
    count = int(visible.sum())
    if not count:
        return scores
    norms = K1 * (1 - B + B * lengths / max(lengths[visible].mean(), 1.0))
    most = 0.0
    for term in postings:
        turns = term["turn"].astype(np.int64)
        seen = visible[turns]
        turns, frequency = turns[seen], term["frequency"][seen].astype(np.float64)
        rarity = inverse_frequency(len(turns), count)
        most += rarity
        scores[turns] += rarity * frequency * (K1 + 1) / (frequency + norms[turns])
    return np.minimum(scores / (most * _SHORTEST), 1.0) if most else scores


def inverse_frequency(holding: int, count: int) -> float:
    """The rarity of a term that ``holding`` of ``count`` turns hold; never negative."""
    return float(np.log1p((count - holding + 0.5) / (holding + 0.5)))


def window_postings(postings: Postings, previous: Turns, after: Turns, visible: Mask) -> Postings:
    """The postings of the windows of three neighbouring turns, from those of the turns."""
    turns = postings["turn"].astype(np.int64)
    seen = visible[turns]
    turns, frequency = turns[seen], postings["frequency"][seen]
    spread = np.concatenate([turns, previous[turns], after[turns]])
    weights = np.concatenate([frequency] * 3)
    inside = spread >= 0
    inside[inside] = visible[spread[inside]]
    windows, places = np.unique(spread[inside], return_inverse=True)
    gathered = np.zeros(len(windows), dtype=postings.dtype)
    gathered["turn"] = windows
    gathered["frequency"] = np.minimum(np.bincount(places, weights[inside], len(windows)), 65_535)
    return gathered


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


def cosine(vectors: NDArray[np.float16], query: NDArray[np.float32], after: Turns) -> Scores:
    """Mean cosine of the two windows that hold a turn: (before, it) and (it, next). NaN where there is no vector yet.

    ``vectors``: one row a turn, of the turn with the one before it.
    """
    known = len(vectors)
    own = np.full(len(after), np.nan)
    # einsum, not a BLAS product: a row's sum must not depend on how many rows stand beside it
    own[:known] = np.einsum("ij,j->i", vectors.astype(np.float32), query)
    following = np.where(after >= 0, own[after], np.nan) if len(after) else own
    return np.where(np.isnan(following), own, (own + following) / 2)
