"""From features to a ranking: which turns, and through them which segments, answer a query."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice

import numpy as np
from msgspec import Struct

from memory_gateway.embeddings.cosine_scale import CosineScale
from memory_gateway.engine import store
from memory_gateway.engine.analysis import content_terms
from memory_gateway.engine.columns import Mask, Scores, after_in_segment
from memory_gateway.engine.cues import QUESTION, TIMED, asks_for_time
from memory_gateway.engine.dates import periods
from memory_gateway.engine.fusion import (
    DENSE_CANDIDATES,
    HYBRID,
    KEYWORD,
    SECOND_ROUND,
    Features,
    points_of,
    score_of,
    standardised,
    strongest,
    with_context,
    with_exact,
)
from memory_gateway.engine.held import Held
from memory_gateway.engine.held_vectors import HeldVectors, Vector
from memory_gateway.engine.items import ScoredTurn
from memory_gateway.engine.people import Naming, naming
from memory_gateway.engine.pieces import split_text, text_hash
from memory_gateway.engine.recall import SpaceView, load_participants, load_postings
from memory_gateway.engine.schemas import Method
from memory_gateway.engine.scoring import (
    Term,
    bm25,
    bm25_and_coverage,
    both_windows,
    neighbour,
    seen_term,
    window_mean,
)
from memory_gateway.engine.segments import Turn
from memory_gateway.kit.text import fold
from memory_gateway.storage.port import Transaction

FACT_CANDIDATES = 100
QUERY_CHARS = 8_000
_DATED_CHARS = 2_000
_QUERY_TERMS = 256
_TURNS_RANKED = 4_000
_TURNS_READ = 1_000
_EXPANSION_EPISODES = 3
_EXPANSION_TURNS = 2
_EXPANSION_TERMS = 3
_DAY_MS = 86_400_000
_DAYS_AFTER_A_DAY = 10  # what happened is told soon after
_DAYS_AFTER_A_PERIOD = 14


class Meaning(Struct, frozen=True):
    """A question's vector by a model, and what its cosines say under that model."""

    vector: Vector
    model: str
    scale: CosineScale


class Query(Struct, frozen=True):
    """A question and how it is to be answered. ``meaning`` is None without an embedder."""

    text: str
    method: Method
    meaning: Meaning | None
    radius: float
    now_ms: int
    min_score: float = 0.0


class RankedSegment(Struct, frozen=True):
    """A segment that answers, its best score, and those of its turns that are among the query's best hundred."""

    segment_no: int
    score: float
    turns: tuple[ScoredTurn, ...]


async def rank(transaction: Transaction, view: SpaceView, query: Query, held: Held) -> Iterator[RankedSegment]:
    """The segments that answer the query, best first; the same for the same data, always."""
    if not view.visible.any():
        return iter(())
    cosines = await _cosines(transaction, view, query, held.vectors)
    if query.method == "vector":
        return _by_segment(view, _by_meaning(view, query, cosines), 0.0)
    named = await named_in(transaction, view, query.text[:QUERY_CHARS])
    ranking = _Ranking(transaction, view, query, named, cosines)
    wanted = _terms(named.rest)
    scores = await ranking.scores(wanted)
    if query.method == "agentic" and (more := await ranking.expansion(wanted, scores)):
        scores = np.maximum(scores, SECOND_ROUND * await ranking.scores(wanted | more))
    return _by_segment(view, scores, query.min_score if query.method == "hybrid" else 0.0)


async def named_in(transaction: Transaction, view: SpaceView, text: str) -> Naming:
    """Whom the text names of those who speak in what may be seen."""
    seen = set(np.flatnonzero(np.bincount(view.columns.speakers[view.visible])).tolist())
    everybody = await load_participants(transaction, view.space_no) if seen else []
    return naming(text, [one for one in everybody if one.participant_no in seen])


async def _cosines(transaction: Transaction, view: SpaceView, query: Query, held: HeldVectors) -> Scores | None:
    """Of the windows that hold each turn."""
    meaning = query.meaning
    if meaning is None or query.method == "keyword":
        return None
    turns = len(view.columns)
    own = await held.cosines(transaction, view.space_no, meaning.model, meaning.vector, turns)
    own[~view.visible] = np.nan
    after = after_in_segment(view.columns.links)
    # where nothing else tells of a turn, the vector made with a deleted one is better than none
    own[view.follows_deleted & ~np.isnan(np.append(own, np.nan)[after])] = np.nan
    return both_windows(own, after)


def _by_meaning(view: SpaceView, query: Query, cosines: Scores | None) -> Scores:
    """The cosines themselves, from the radius on."""
    known = np.zeros(len(view.columns)) if cosines is None else np.nan_to_num(cosines, nan=0.0)
    found = np.where(view.visible & (known >= query.radius), known, 0.0)
    return with_exact(found, _exact(view, query))


def _exact(view: SpaceView, query: Query) -> Mask:
    """The turns that are the query's text, or together are: a long message is as many turns as it has pieces."""
    columns, after = view.columns, view.columns.links.after
    exact = np.zeros(len(columns), dtype=bool)
    first, *others = [np.uint64(text_hash(part)) for part in split_text(query.text) or [query.text]]
    starts = ends = np.flatnonzero((columns.text_hashes == first) & view.visible)
    for part in others:
        ends = after[ends]
        goes_on = (ends >= 0) & (columns.text_hashes[ends] == part) & view.visible[ends]
        starts, ends = starts[goes_on], ends[goes_on]
    for _ in range(len(others) + 1):
        exact[starts] = True
        starts = after[starts]
        starts = starts[starts >= 0]
    return exact


class _Words(Struct, frozen=True):
    """BM25 of the turns, names and all; BM25 of the windows around them; how much of the query stands there."""

    turn: Scores
    window: Scores
    coverage: Scores


class _Ranking:
    """One query on one space. ``cosines`` is None where words alone shall answer."""

    def __init__(
        self, transaction: Transaction, view: SpaceView, query: Query, named: Naming, cosines: Scores | None
    ) -> None:
        self._transaction = transaction
        self._view = view
        self._query = query
        self._named = named
        self._cosines = cosines
        self._exact = _exact(view, query)
        self._known: dict[str, Term] = {}

    async def scores(self, wanted: frozenset[str]) -> Scores:
        """The score of each turn for these terms, 0 for a turn that does not answer or may not be seen."""
        weights = KEYWORD if self._cosines is None else HYBRID
        features = self._features(await self._words(wanted))
        answers = (features.turn > 0) | self._exact | self._nearest
        counted = self._view.visible & self._in_segments_of(answers)
        if self._cosines is None:
            counted &= (features.window > 0) | answers
        points = with_context(points_of(features, weights), counted, self._view.columns.links, weights)
        return with_exact(np.where(counted, score_of(points, weights), 0.0), self._exact)

    def _features(self, words: _Words) -> Features:
        view, asked = self._view, self._query.text
        cues = view.columns.cues
        question = (cues & QUESTION) > 0
        nothing = np.zeros(len(cues), dtype=bool)
        day, period = self._in_time
        return Features(
            turn=words.turn,
            window=words.window,
            coverage=words.coverage,
            length=view.columns.lengths,
            speaker=nothing if self._named.speaker is None else view.columns.speakers == self._named.speaker,
            day=day,
            period=period,
            timed=(cues & TIMED) > 0 if asks_for_time(asked) else nothing,
            question=question,
            answer=neighbour((question & view.visible).astype(np.float64), view.columns.links.previous) > 0,
            cosine=self._standardised,
        )

    @cached_property
    def _standardised(self) -> Scores | None:
        """The cosines in spreads; below the radius they may speak against a turn, but not for it."""
        if self._cosines is None or self._query.meaning is None:
            return None
        spreads = standardised(self._cosines, self._query.meaning.scale)
        return np.where(self._cosines < self._query.radius, np.minimum(spreads, 0.0), spreads)

    @cached_property
    def _in_time(self) -> tuple[Mask, Mask]:
        """Which turns were said on a day that the query names, and which in the time it names or soon after."""
        times = self._view.columns.times
        day, period = np.zeros(len(times), dtype=bool), np.zeros(len(times), dtype=bool)
        seen = times[self._view.visible]
        years = range(_year(int(seen.min())), _year(int(seen.max())) + 1)
        for named in periods(self._query.text[:_DATED_CHARS], self._query.now_ms, years):
            before, after = (1, _DAYS_AFTER_A_DAY) if named.is_day else (0, _DAYS_AFTER_A_PERIOD)
            period |= (times >= named.start_ms - before * _DAY_MS) & (times < named.end_ms + after * _DAY_MS)
            if named.is_day:
                day |= (times >= named.start_ms) & (times < named.end_ms)
        return day, period

    @cached_property
    def _nearest(self) -> Mask:
        """The turns nearest in meaning; none where words alone shall answer."""
        best = np.zeros(len(self._view.columns), dtype=bool)
        if self._cosines is not None:
            near = np.where(self._view.visible & (self._cosines >= self._query.radius), self._cosines, np.nan)
            best[strongest(near, DENSE_CANDIDATES)] = True
        return best

    def _in_segments_of(self, answers: Mask) -> Mask:
        """Turns of segments in which at least one turn answers by itself: a neighbour alone makes no hit."""
        segments = self._view.columns.links.segments
        held = np.zeros(int(segments.max()) + 1, dtype=bool)
        held[segments[answers]] = True
        return np.asarray(held[segments], dtype=bool)

    async def _words(self, wanted: frozenset[str]) -> _Words:
        if not wanted:
            literal = await self._literal()
            return _Words(literal, literal, literal)
        view, lengths, links = self._view, self._view.columns.lengths, self._view.columns.links
        whole = _terms(self._query.text[:QUERY_CHARS]) | wanted
        known = {term: await self._term(term) for term in sorted(whole)}
        terms = [known[term] for term in sorted(wanted)]
        if not any(len(turns) for turns, _ in terms):
            terms = list(known.values())  # the names are all that anybody said
        around, covered = bm25_and_coverage(terms, lengths, links, view.visible)
        return _Words(
            turn=bm25(list(known.values()), lengths, view.visible),
            window=window_mean(around, links, view.visible),
            coverage=covered,
        )

    async def _term(self, term: str) -> Term:
        if term not in self._known:
            postings = await load_postings(self._transaction, self._view.space_no, term)
            self._known[term] = seen_term(postings, self._view.visible)
        return self._known[term]

    async def _literal(self) -> Scores:
        """A query of symbols alone has no terms: the turns that hold it as it stands."""
        found = np.zeros(len(self._view.columns))
        needle = fold(self._query.text.strip())
        for first in range(0, len(found) if needle else 0, _TURNS_READ):
            params = {"space_no": self._view.space_no, "first": first, "end": first + _TURNS_READ}
            for row in await self._transaction.fetch(store.TURN_RANGE, params):
                turn = Turn(*row)
                found[turn.turn_no] = needle in fold(turn.shown)
        return np.where(self._view.visible, found, 0.0)

    async def expansion(self, wanted: frozenset[str], scores: Scores) -> frozenset[str]:
        """Terms that the best episodes of the first round share and the query lacks: the second round's."""
        best = islice(_by_segment(self._view, scores, 0.0), _EXPANSION_EPISODES)
        shared: Counter[str] = Counter()
        for turn in (turn for segment in best for turn in segment.turns[:_EXPANSION_TURNS]):
            params = {"space_no": self._view.space_no, "first": turn.turn_no, "end": turn.turn_no + 1}
            for row in await self._transaction.fetch(store.TURN_RANGE, params):
                shared.update(sorted(set(content_terms(Turn(*row).text))))
        telling = [term for term, count in shared.most_common() if count > 1 and term not in wanted]
        return frozenset(telling[:_EXPANSION_TERMS])


def _terms(text: str) -> frozenset[str]:
    return frozenset(content_terms(text)[:_QUERY_TERMS])


def _year(epoch_ms: int) -> int:
    return datetime.fromtimestamp(epoch_ms / 1000, UTC).year


def _by_segment(view: SpaceView, scores: Scores, least: float) -> Iterator[RankedSegment]:
    ranked = strongest(scores, _TURNS_RANKED)
    ranked = ranked[scores[ranked] >= least]
    numbers = view.columns.links.segments[ranked]
    segments, first = np.unique(numbers, return_index=True)
    order = np.argsort(first)
    best: defaultdict[int, list[ScoredTurn]] = defaultdict(list)
    for turn_no, segment_no in zip(ranked[:FACT_CANDIDATES].tolist(), numbers[:FACT_CANDIDATES].tolist(), strict=True):
        best[segment_no].append(ScoredTurn(turn_no, float(scores[turn_no])))
    for place in order:
        segment_no = int(segments[place])
        yield RankedSegment(segment_no, float(scores[ranked[first[place]]]), tuple(best.get(segment_no, ())))
