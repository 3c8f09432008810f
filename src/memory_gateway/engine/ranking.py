"""From features to a ranking: which turns, and through them which segments, answer a query."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import numpy as np
from msgspec import Struct, structs

from memory_gateway.embeddings.cosine_scale import CosineScale
from memory_gateway.engine import store
from memory_gateway.engine.analysis import content_terms
from memory_gateway.engine.columns import Mask, Scores
from memory_gateway.engine.cues import asks_for_time
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
from memory_gateway.engine.held_vectors import HeldVectors, Served, Vector, served_set
from memory_gateway.engine.items import ScoredTurn
from memory_gateway.engine.people import Naming, naming
from memory_gateway.engine.pieces import split_text, text_hash
from memory_gateway.engine.recall import SpaceView
from memory_gateway.engine.schemas import Method
from memory_gateway.engine.scoring import Words, both_windows, window_mean, words_of
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
    """A question's vector by a model, named as spaces remember it, and what its cosines say under that model."""

    vector: Vector
    model: str
    scale: CosineScale


class Query(Struct, frozen=True):
    """A question and how it is to be answered.

    ``meanings`` by model; None for a model that cannot be asked, and none at all where words alone shall answer.
    """

    text: str
    method: Method
    meanings: Mapping[str, Meaning | None]
    radius: float
    now_ms: int
    min_score: float = 0.0


class OtherModel(Exception):
    """A space is searched by vectors of a model that the query was not embedded with."""

    def __init__(self, model: str, space_no: int) -> None:
        super().__init__(model)
        self.model = model
        self.space_no = space_no


class _Near(Struct, frozen=True):
    """The cosines of the windows that hold each turn, and what they say."""

    cosines: Scores
    scale: CosineScale


class RankedSegment(Struct, frozen=True):
    """A segment that answers, its best score, and those of its turns that are among the query's best hundred."""

    segment_no: int
    score: float
    turns: Sequence[ScoredTurn]


async def rank(
    transaction: Transaction, view: SpaceView, query: Query, held: Held, named: Naming | None = None
) -> Iterator[RankedSegment]:
    """The segments that answer the query, best first; the same for the same data, always.

    ``named``: what `named_in` says of the query, where it was asked before. Raises `OtherModel`.
    """
    if view.is_empty:
        return iter(())
    near = await _near(transaction, view, query, held.vectors)
    if query.method == "vector":
        return _by_segment(view, _by_meaning(view, query, near), 0.0)
    named = named or await named_in(transaction, view, query.text[:QUERY_CHARS])
    ranking = _Ranking(transaction, view, query, named, near)
    wanted = _terms(named.rest)
    scores = await ranking.scores(wanted)
    if query.method == "agentic" and (more := await ranking.expansion(wanted, scores)):
        scores = np.maximum(scores, SECOND_ROUND * await ranking.scores(wanted | more))
    return _by_segment(view, scores, query.min_score if query.method == "hybrid" else 0.0)


async def named_in(transaction: Transaction, view: SpaceView, text: str) -> Naming:
    """Whom the text names of those who speak in what may be seen."""
    return naming(text, await view.names(transaction))


async def _near(transaction: Transaction, view: SpaceView, query: Query, held: HeldVectors) -> _Near | None:
    """None where words alone shall answer."""
    if not query.meanings or query.method == "keyword":
        return None
    served = await served_set(transaction, view.space_no)
    meaning = _meaning_for(view.space_no, served, query)
    if meaning is None:
        return None
    own = await held.cosines(transaction, view.space_no, served, meaning.vector, len(view.columns))
    own[~view.visible] = np.nan
    after = view.after
    # where nothing else tells of a turn, the vector made with a deleted one is better than none
    own[view.follows_deleted & ~np.isnan(np.append(own, np.nan)[after])] = np.nan
    return _Near(both_windows(own, after), meaning.scale)


def _meaning_for(space_no: int, served: Served | None, query: Query) -> Meaning | None:
    """By the model of the space's vectors; where it has none, by any."""
    if served is None:
        return next(filter(None, query.meanings.values()), None)
    if served.model not in query.meanings:
        raise OtherModel(served.model, space_no)
    return query.meanings[served.model]


def _by_meaning(view: SpaceView, query: Query, near: _Near | None) -> Scores:
    """The cosines themselves, from the radius on."""
    known = np.zeros(len(view.columns)) if near is None else np.nan_to_num(near.cosines, nan=0.0)
    found = np.where(view.visible & (known >= query.radius), known, 0.0)
    return with_exact(found, _exact(view, query))


def _exact(view: SpaceView, query: Query) -> Mask:
    """The turns that are the query's text, or together are: a long message is as many turns as it has pieces."""
    columns, after = view.columns, view.columns.links.after
    first, *others = [np.uint64(text_hash(part)) for part in split_text(query.text) or [query.text]]
    starts = np.flatnonzero(columns.text_hashes == first)
    if not len(starts):  # nearly always
        return view.nothing
    exact = np.zeros(len(columns), dtype=bool)
    starts = ends = starts[view.visible[starts]]
    for part in others:
        ends = after[ends]
        goes_on = (ends >= 0) & (columns.text_hashes[ends] == part) & view.visible[ends]
        starts, ends = starts[goes_on], ends[goes_on]
    for _ in range(len(others) + 1):
        exact[starts] = True
        starts = after[starts]
        starts = starts[starts >= 0]
    return exact


class _Ranking:
    """One query on one space. ``near`` is None where words alone shall answer."""

    def __init__(
        self, transaction: Transaction, view: SpaceView, query: Query, named: Naming, near: _Near | None
    ) -> None:
        self._transaction = transaction
        self._view = view
        self._query = query
        self._named = named
        self._cosines = None if near is None else near.cosines
        self._exact = _exact(view, query)
        self._in_time = self._said_in_time()
        self._spreads = None if near is None else self._standardised(near)
        self._nearest = self._near_in_meaning()

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

    def _features(self, words: Words) -> Features:
        view, speaker = self._view, self._named.speaker
        day, period = self._in_time
        return Features(
            turn=words.turn,
            window=words.window,
            coverage=words.coverage,
            length=view.columns.lengths,
            speaker=None if speaker is None else view.columns.speakers == speaker,
            day=day,
            period=period,
            timed=view.timed if asks_for_time(self._query.text) else None,
            question=view.questions,
            answer=view.answers,
            cosine=self._spreads,
        )

    def _standardised(self, near: _Near) -> Scores:
        """The cosines in spreads; below the radius they may speak against a turn, but not for it."""
        spreads = standardised(near.cosines, near.scale)
        return np.where(near.cosines < self._query.radius, np.minimum(spreads, 0.0), spreads)

    def _said_in_time(self) -> tuple[Mask | None, Mask | None]:
        """Which turns were said on a day that the query names, and which in the time it names or soon after."""
        named = periods(self._query.text[:_DATED_CHARS], self._query.now_ms, self._view.years)
        if not named:
            return None, None
        times = self._view.columns.times
        day, period = np.zeros(len(times), dtype=bool), np.zeros(len(times), dtype=bool)
        for one in named:
            before, after = (1, _DAYS_AFTER_A_DAY) if one.is_day else (0, _DAYS_AFTER_A_PERIOD)
            period |= (times >= one.start_ms - before * _DAY_MS) & (times < one.end_ms + after * _DAY_MS)
            if one.is_day:
                day |= (times >= one.start_ms) & (times < one.end_ms)
        return day, period

    def _near_in_meaning(self) -> Mask:
        """The turns nearest in meaning; none where words alone shall answer."""
        if self._cosines is None:
            return self._view.nothing
        best = np.zeros(len(self._view.columns), dtype=bool)
        near = np.where(self._view.visible & (self._cosines >= self._query.radius), self._cosines, np.nan)
        best[strongest(near, DENSE_CANDIDATES)] = True
        return best

    def _in_segments_of(self, answers: Mask) -> Mask:
        """Turns of segments in which at least one turn answers by itself: a neighbour alone makes no hit."""
        links = self._view.columns.links
        segments = links.segments
        held = np.zeros(links.segment_count, dtype=bool)
        held[segments[answers]] = True
        return np.asarray(held[segments], dtype=bool)

    async def _words(self, wanted: frozenset[str]) -> Words:
        if not wanted:
            literal = await self._literal()
            return Words(literal, literal, literal)
        view = self._view
        whole = _terms(self._query.text[:QUERY_CHARS]) | wanted
        terms = {term: await view.evidence(self._transaction, term) for term in sorted(whole)}
        # where nothing else was ever said, the names count as well
        only_names = not any(terms[term].turns for term in wanted)
        near = [only_names or term in wanted for term in terms]
        words = words_of(list(terms.values()), near, len(view.columns))
        return structs.replace(words, window=window_mean(words.window, view.norms, view.columns.links))

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
        for turn_no in (turn_no for segment in best for turn_no, _ in segment.turns[:_EXPANSION_TURNS]):
            params = {"space_no": self._view.space_no, "first": turn_no, "end": turn_no + 1}
            for row in await self._transaction.fetch(store.TURN_RANGE, params):
                shared.update(sorted(set(content_terms(Turn(*row).text))))
        telling = [term for term, count in shared.most_common() if count > 1 and term not in wanted]
        return frozenset(telling[:_EXPANSION_TERMS])


def _terms(text: str) -> frozenset[str]:
    return frozenset(content_terms(text)[:_QUERY_TERMS])


def _by_segment(view: SpaceView, scores: Scores, least: float) -> Iterator[RankedSegment]:
    ranked = strongest(scores, _TURNS_RANKED)
    points = scores[ranked]
    if least:
        ranked, points = ranked[points >= least], points[points >= least]
    numbers, values = view.columns.links.segments[ranked].tolist(), points.tolist()
    best: defaultdict[int, list[ScoredTurn]] = defaultdict(list)
    for segment_no, turn_no, score in zip(numbers, ranked[:FACT_CANDIDATES].tolist(), values, strict=False):
        best[segment_no].append((turn_no, score))
    found: set[int] = set()
    for segment_no, score in zip(numbers, values, strict=True):
        if segment_no not in found:
            found.add(segment_no)
            yield RankedSegment(segment_no, score, best.get(segment_no, []))
