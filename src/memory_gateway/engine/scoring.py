"""Features of turns: pure functions over a space's arrays, each giving one number a turn.

Statistics are exact for what may be seen: document frequencies and mean lengths count the visible turns only, so a
search inside a filter ranks as a search in a store that holds nothing else.
"""

from collections.abc import Sequence

import numpy as np
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


def bm25_and_coverage(terms: Sequence[Term], lengths: Scores, links: Links, visible: Mask) -> tuple[Scores, Scores]:
    """BM25 of the window of three neighbouring turns around each turn, and which share of the query stands there, rare
    terms counting for more. Both 0..1; ``terms`` are where they stand as turns."""
    matched, covered = np.zeros(len(lengths)), np.zeros(len(lengths))
    count = int(visible.sum())
    if not count:
        return matched, covered
    around = in_window(np.where(visible, lengths, 0.0), links)
    norms = K1 * (1 - B + B * around / max(around[visible].mean(), 1.0))
    most = most_covered = 0.0
    for turns, frequency in terms:
        if len(turns):
            held = in_window(_spread(turns, frequency, len(lengths)), links)
            held[~visible] = 0.0
            holding = held > 0
            rarity = inverse_frequency(int(holding.sum()), count)
            matched += rarity * (K1 + 1) * held / (held + norms)
            most += rarity
            rarity = inverse_frequency(len(turns), count)
            covered += rarity * holding
            most_covered += rarity
    return (
        np.minimum(matched / (most * _SHORTEST), 1.0) if most else matched,
        covered / most_covered if most_covered else covered,
    )


def _spread(turns: Turns, frequency: Scores, count: int) -> Scores:
    held = np.zeros(count)
    held[turns] = frequency
    return held


def inverse_frequency(holding: int, count: int) -> float:
    """The rarity of a term that ``holding`` of ``count`` turns hold; never negative."""
    return float(np.log1p((count - holding + 0.5) / (holding + 0.5)))


def in_window(scores: Scores, links: Links) -> Scores:
    """The sum over each turn and its two neighbours."""
    return scores + neighbour(scores, links.previous) + neighbour(scores, links.after)


def neighbour(scores: Scores, towards: Turns) -> Scores:
    """The score of each turn's neighbour, 0 where it has none."""
    # -1, for none, takes the last place
    return np.append(scores, 0.0)[towards]


def window_mean(scores: Scores, links: Links, visible: Mask) -> Scores:
    """The mean score of the windows that hold each turn: its own and its neighbours'."""
    total = in_window(np.where(visible, scores, 0.0), links)
    count = in_window(visible.astype(np.float64), links)
    return total / np.maximum(count, 1.0)


def both_windows(own: Scores, after: Turns) -> Scores:
    """From the cosine of each turn together with the one before it, to the mean of the two such windows that hold it.

    NaN where there is no vector yet.
    """
    following = np.append(own, np.nan)[after]
    return np.where(np.isnan(following), own, np.where(np.isnan(own), following, (own + following) / 2))


def segment_best(points: Scores, segments: Turns, counted: Mask) -> Scores:
    """For each turn the best of its segment among the counted, and nothing below 0."""
    best = np.zeros(int(segments.max(initial=0)) + 1)
    np.maximum.at(best, segments[counted], points[counted])
    return np.asarray(best[segments], dtype=np.float64)
