"""Channels to a ranking: which turns, and through them which segments, answer a query."""

from collections import Counter, defaultdict

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from memory_gateway.engine import store
from memory_gateway.engine.analysis import content_terms
from memory_gateway.engine.columns import Mask, Scores
from memory_gateway.engine.fusion import (
    dense_score,
    hybrid_score,
    keyword_score,
    strongest,
    with_exact,
    with_neighbours,
)
from memory_gateway.engine.items import ScoredTurn
from memory_gateway.engine.pieces import text_hash
from memory_gateway.engine.recall import SpaceView, load_postings, load_vectors
from memory_gateway.engine.schemas import Method
from memory_gateway.engine.scoring import bm25, cosine, window_lengths, window_mean, window_postings
from memory_gateway.kit.text import fold
from memory_gateway.storage.port import Transaction

FACT_CANDIDATES = 100
QUERY_CHARS = 8_000
_QUERY_TERMS = 256
_TURNS_RANKED = 4_000
_EXPANSION_EPISODES = 3
_EXPANSION_TERMS = 5
_LITERAL_SCORE = 0.5

Vector = NDArray[np.float32]


class Query(Struct, frozen=True):
    """A question, its vector by a model where there is an embedder, and how it is to be answered."""

    text: str
    method: Method
    vector: Vector | None
    model: str
    radius: float
    min_score: float = 0.0


class RankedSegment(Struct, frozen=True):
    """A segment that answers, its best score, and those of its turns that are among the query's best hundred."""

    segment_no: int
    score: float
    turns: tuple[ScoredTurn, ...]


async def rank(transaction: Transaction, view: SpaceView, query: Query) -> list[RankedSegment]:
    """The segments that answer the query, best first; the same for the same data, always."""
    if not view.visible.any():
        return []
    cosines = await _cosines(transaction, view, query)
    wanted = Counter(content_terms(query.text[:QUERY_CHARS])[:_QUERY_TERMS])
    scores = await _score(transaction, view, query, wanted, cosines)
    if query.method == "agentic" and (more := await _expansion(transaction, view, wanted, scores)):
        scores = np.maximum(scores, await _score(transaction, view, query, wanted + more, cosines))
    return _by_segment(view, scores, query.min_score if query.method == "hybrid" else 0.0)


async def _score(
    transaction: Transaction, view: SpaceView, query: Query, wanted: Counter[str], cosines: Scores | None
) -> Scores:
    """The query's score of each turn, 0 for a turn that does not answer or may not be seen."""
    exact = (view.records["text_hash"] == text_hash(query.text)) & view.visible
    if query.method == "vector":
        known = np.zeros(len(view.records)) if cosines is None else np.nan_to_num(cosines, nan=0.0)
        return with_exact(np.where(view.visible & (known >= query.radius), known, 0.0), exact)
    turn, window = await _keyword(transaction, view, query, wanted)
    keyword = keyword_score(turn, window)
    scores = keyword if cosines is None else hybrid_score(keyword, _seen(cosines, view.visible), query.radius)
    anchored = turn > 0 if cosines is None else (turn > 0) | (dense_score(_seen(cosines, view.visible)) > 0)
    scores = np.where(_in_anchored_segment(view, anchored | exact), scores, 0.0)
    return with_exact(np.where(view.visible, with_neighbours(scores, view.previous, view.after), 0.0), exact)


def _seen(scores: Scores, visible: Mask) -> Scores:
    return np.where(visible, scores, np.nan)


def _in_anchored_segment(view: SpaceView, anchored: Mask) -> Mask:
    """Turns of segments in which at least one turn answers by itself: a neighbour alone makes no hit."""
    segments = view.records["segment"]
    held = np.zeros(int(segments.max()) + 1, dtype=bool)
    held[segments[anchored]] = True
    return np.asarray(held[segments], dtype=bool)


async def _cosines(transaction: Transaction, view: SpaceView, query: Query) -> Scores | None:
    if query.vector is None or query.method == "keyword":
        return None
    vectors = await load_vectors(transaction, view.space_no, query.model, len(query.vector))
    return cosine(vectors, query.vector, view.after)


async def _keyword(
    transaction: Transaction, view: SpaceView, query: Query, wanted: Counter[str]
) -> tuple[Scores, Scores]:
    """BM25 of the turns, and of the windows around them."""
    if not wanted:
        literal = await _literal(transaction, view, query.text)
        return literal, literal
    postings = await load_postings(transaction, view.space_no, wanted)
    turn = bm25(postings, view.lengths, view.visible)
    windows = [window_postings(term, view.previous, view.after, view.visible) for term in postings]
    lengths = window_lengths(view.lengths, view.previous, view.after, view.visible)
    window = bm25(windows, lengths, view.visible)
    return turn, window_mean(window, view.previous, view.after, view.visible)


async def _literal(transaction: Transaction, view: SpaceView, text: str) -> Scores:
    """A query of symbols alone has no terms: the turns that hold it as it stands."""
    scores = np.zeros(len(view.records))
    needle = fold(text.strip())
    if needle:
        rows = await transaction.fetch(store.TEXTS, {"space_no": view.space_no})
        found = [turn_no for turn_no, label, text in rows if needle in fold(f"{label or ''} {text}")]
        scores[found] = _LITERAL_SCORE
    return np.where(view.visible, scores, 0.0)


async def _expansion(transaction: Transaction, view: SpaceView, wanted: Counter[str], scores: Scores) -> Counter[str]:
    """Terms that the best episodes of the first round share and the query lacks: the second round's."""
    best = _by_segment(view, scores, 0.0)[:_EXPANSION_EPISODES]
    numbers = [turn.turn_no for segment in best for turn in segment.turns[:2]]
    shared: Counter[str] = Counter()
    for number in numbers:
        params = {"space_no": view.space_no, "first": number, "end": number + 1}
        for row in await transaction.fetch(store.TURN_RANGE, params):
            shared.update(set(content_terms(row[7])))
    telling = [term for term, count in shared.most_common() if count > 1 and term not in wanted]
    return Counter(telling[:_EXPANSION_TERMS])


def _by_segment(view: SpaceView, scores: Scores, least: float) -> list[RankedSegment]:
    ranked = strongest(scores, _TURNS_RANKED)
    ranked = ranked[scores[ranked] >= least]
    numbers = view.records["segment"][ranked]
    segments, first = np.unique(numbers, return_index=True)
    order = np.argsort(first)
    best: defaultdict[int, list[ScoredTurn]] = defaultdict(list)
    for turn_no, segment_no in zip(ranked[:FACT_CANDIDATES].tolist(), numbers[:FACT_CANDIDATES].tolist(), strict=True):
        best[segment_no].append(ScoredTurn(turn_no, float(scores[turn_no])))
    leaders = scores[ranked[first[order]]].tolist()
    return [
        RankedSegment(segment_no, score, tuple(best.get(segment_no, ())))
        for segment_no, score in zip(segments[order].tolist(), leaders, strict=True)
    ]
