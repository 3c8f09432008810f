"""Where channels become one score. All weights stand here.

Every part is brought to 0..1 by constants, not by the candidates at hand, so that scores of different searches
(the scopes and batches of one request) can be compared.
"""

import numpy as np

from memory_gateway.engine.columns import Mask, Scores, Turns
from memory_gateway.engine.scoring import neighbour

TURN_WEIGHT = 0.6
WINDOW_WEIGHT = 0.4
KEYWORD_WEIGHT = 0.45
DENSE_WEIGHT = 0.55
NEIGHBOUR_SHARE = 0.05
DENSE_CANDIDATES = 100
# Cosines of the multilingual e5 family crowd between about 0.75 (unrelated) and 0.95 (the same).
COSINE_FLOOR, COSINE_CEILING = 0.75, 0.95
EXACT = 1.0
_BELOW_EXACT = 0.999


def keyword_score(turn: Scores, window: Scores) -> Scores:
    """The lexical channels as one; 0 for a turn none of whose window matches."""
    return TURN_WEIGHT * turn + WINDOW_WEIGHT * window


def dense_score(cosines: Scores) -> Scores:
    """A cosine on the scale of the keyword score; 0 where there is no vector."""
    scaled = (cosines - COSINE_FLOOR) / (COSINE_CEILING - COSINE_FLOOR)
    return np.clip(np.nan_to_num(scaled, nan=0.0), 0.0, 1.0)


def hybrid_score(keyword: Scores, cosines: Scores, radius: float) -> Scores:
    """Keyword hits, and the best of the dense channel at or above the radius.

    A turn whose vector is not there yet is judged by its words alone: it must not fall behind for being new.
    """
    near = np.nan_to_num(cosines, nan=-1.0) >= radius
    best = np.zeros(len(cosines), dtype=bool)
    best[strongest(np.where(near, cosines, np.nan), DENSE_CANDIDATES)] = True
    both = KEYWORD_WEIGHT * keyword + DENSE_WEIGHT * np.where(near, dense_score(cosines), 0.0)
    return np.where(np.isnan(cosines), keyword, np.where(best | (keyword > 0), both, 0.0))


def with_neighbours(scores: Scores, previous: Turns, after: Turns) -> Scores:
    """A share of the neighbours' scores, for turns that score themselves; still below an exact match."""
    shared = scores + NEIGHBOUR_SHARE * (neighbour(scores, previous) + neighbour(scores, after))
    return np.where(scores > 0, np.minimum(shared / (1 + 2 * NEIGHBOUR_SHARE), _BELOW_EXACT), 0.0)


def with_exact(scores: Scores, exact: Mask) -> Scores:
    """The query's exact text comes first in every method."""
    return np.where(exact, EXACT, scores)


def strongest(scores: Scores, count: int) -> Turns:
    """The turns of the best scores, best first, later turns first among equals; NaN and 0 are no score."""
    held = np.flatnonzero(np.nan_to_num(scores, nan=0.0) > 0)
    if len(held) > count:
        cut = np.partition(scores[held], len(held) - count)[len(held) - count]
        held = held[scores[held] >= cut]
    order = np.lexsort((-held, -scores[held]))
    return held[order][:count]
