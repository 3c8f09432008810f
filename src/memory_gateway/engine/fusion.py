"""Where the features of a turn become one score. All weights stand here.

A turn's points are a weighted sum. No feature is scaled by the candidates at hand, so that scores of different searches
(the scopes and batches of one request) can be compared; a cosine is measured in its model's own spread. Weights were
tuned on one half of LoCoMo and reported on the other: see ``docs/recall.md``.
"""

import numpy as np
from msgspec import Struct

from memory_gateway.embeddings.cosine_scale import CosineScale
from memory_gateway.engine.columns import Links, Mask, Scores, Turns
from memory_gateway.engine.scoring import neighbour, segment_best

DENSE_CANDIDATES = 100
EXACT = 1.0
SECOND_ROUND = 0.7  # what an answer to a widened query counts for beside one to the query
_BELOW_EXACT = 0.999


class Weights(Struct, frozen=True):
    """What each feature counts for, in points.

    ``middle`` and ``steep`` bring points to 0..1: half at the middle, e-fold odds every ``steep``.
    """

    cosine: float  # for each standard deviation above the cosine of unrelated texts
    turn: float  # BM25 of the turn alone, names kept
    window: float  # BM25 of the windows of three turns that hold it
    coverage: float  # the share of the query that stands in the window around it
    length: float  # for each e-fold of its terms: very short turns say little
    speaker: float  # said by the one participant whom the query names
    day: float  # said on a day that the query names
    period: float  # said in the time that the query names, or soon after
    timed: float  # holds a time expression, where the query asks for a time
    question: float  # is a question itself
    answer: float  # follows a question
    neighbours: float  # a share of the points of the turns before and after it
    segment: float  # a share of the best points in its segment
    middle: float
    steep: float


HYBRID = Weights(
    cosine=1.0,
    turn=1.0,
    window=2.75,
    coverage=1.0,
    length=0.52,
    speaker=2.0,
    day=1.0,
    period=2.5,
    timed=1.5,
    question=-1.0,
    answer=0.5,
    neighbours=0.05,
    segment=0.5,
    middle=14.0,
    steep=2.0,
)
KEYWORD = Weights(
    cosine=0.0,
    turn=2.75,
    window=5.5,
    coverage=1.0,
    length=0.34,
    speaker=1.0,
    day=0.7,
    period=1.7,
    timed=1.0,
    question=-0.7,
    answer=0.3,
    neighbours=0.05,
    segment=0.5,
    middle=8.5,
    steep=2.0,
)
_LOGS = np.log1p(np.arange(65_536))  # looked up, for a turn's length is a small whole number
_COSINE_OF_WORDS = 3.0  # a turn that has no vector yet, and every word of the query, is taken for so many spreads


class Features(Struct, frozen=True):
    """What is known of each turn for one query: arrays as long as the space, see `Weights`.

    Masks count as 0 and 1; None where it is true of no turn.
    """

    turn: Scores
    window: Scores
    coverage: Scores
    length: Scores
    speaker: Mask | None
    day: Mask | None
    period: Mask | None
    timed: Mask | None
    question: Mask | None
    answer: Mask | None
    cosine: Scores | None = None  # in spreads, NaN where there is no vector


def standardised(cosines: Scores, scale: CosineScale) -> Scores:
    """Cosines as standard deviations above what unrelated texts have."""
    return (cosines - scale.unrelated) / scale.spread


def points_of(features: Features, weights: Weights) -> Scores:
    """The weighted sum, of each turn by itself."""
    points = (
        weights.turn * features.turn
        + weights.window * features.window
        + weights.coverage * features.coverage
        + weights.length * _LOGS[features.length.astype(np.int64)]
    )
    for weight, mask in (
        (weights.speaker, features.speaker),
        (weights.day, features.day),
        (weights.period, features.period),
        (weights.timed, features.timed),
        (weights.question, features.question),
        (weights.answer, features.answer),
    ):
        if mask is not None:
            points += weight * mask
    if features.cosine is not None:
        known = np.where(np.isnan(features.cosine), _COSINE_OF_WORDS * features.coverage, features.cosine)
        points += weights.cosine * known
    return np.asarray(points, dtype=np.float64)


def with_context(points: Scores, counted: Mask, links: Links, weights: Weights) -> Scores:
    """The points with a share of the neighbours' and of the segment's best. Only counted turns give any."""
    own = np.where(counted, points, 0.0)
    shared = points + weights.neighbours * (neighbour(own, links.previous) + neighbour(own, links.after))
    return shared + weights.segment * segment_best(shared, links, counted)


def score_of(points: Scores, weights: Weights) -> Scores:
    """Points as 0..1, in the same order, below the score of an exact match."""
    return _BELOW_EXACT / (1.0 + np.exp(np.clip((weights.middle - points) / weights.steep, -50.0, 50.0)))


def with_exact(scores: Scores, exact: Mask) -> Scores:
    """The query's exact text comes first in every method."""
    return np.where(exact, EXACT, scores)


def strongest(scores: Scores, count: int) -> Turns:
    """The turns of the best scores, best first, later turns first among equals; NaN and 0 are no score."""
    held = np.flatnonzero(scores > 0)
    if len(held) > count:
        cut = np.partition(scores[held], len(held) - count)[len(held) - count]
        held = held[scores[held] >= cut]
    order = np.lexsort((-held, -scores[held]))
    return held[order][:count]
