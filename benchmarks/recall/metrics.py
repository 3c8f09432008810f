"""How well a ranking answers a question: recall is the share of its evidence, hit whether there was any."""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from statistics import fmean

from msgspec import Struct

from benchmarks.recall.conversations import Part, Question


class Verdict(Struct, frozen=True):
    """Where a question's evidence stands in a ranking, from 1; None for what it does not hold.

    ``session_rank``: of the first session with evidence, sessions ranked by their best unit. ``tokens_until``: of the
    ranking's units up to each piece of evidence, that one included.
    """

    ranks: tuple[int | None, ...]
    session_rank: int | None
    tokens_until: tuple[float | None, ...]


class Answer(Struct, frozen=True):
    """One question asked once. ``reply_tokens``: of all results' texts; ``ten_tokens``: of the first ten units."""

    user_id: str
    part: Part
    method: str
    question: Question
    verdict: Verdict
    reply_tokens: float
    ten_tokens: float
    milliseconds: float


def verdict(
    ranking: Sequence[int], evidence: Sequence[int], session_of: dict[int, str], tokens: dict[int, float]
) -> Verdict:
    """Compare a ranking of distinct units with the evidence."""
    rank_of = {unit: rank for rank, unit in enumerate(ranking, 1)}
    spent = list(accumulate(tokens[unit] for unit in ranking))
    ranks = tuple(rank_of.get(unit) for unit in evidence)
    sessions = list(dict.fromkeys(session_of[unit] for unit in ranking))
    wanted = {session_of[unit] for unit in evidence}
    return Verdict(
        ranks=ranks,
        session_rank=next((rank for rank, session in enumerate(sessions, 1) if session in wanted), None),
        tokens_until=tuple(None if rank is None else spent[rank - 1] for rank in ranks),
    )


def recall(answers: Iterable[Answer], k: int) -> float:
    """Mean share of the evidence among the first ``k`` units."""
    return fmean(_share_within(answer.verdict.ranks, k) for answer in answers)


def recall_within(answers: Iterable[Answer], tokens: float) -> float:
    """Mean share of the evidence in the longest beginning of the ranking that has no more tokens."""
    return fmean(_share_within(answer.verdict.tokens_until, tokens) for answer in answers)


def hit(answers: Iterable[Answer], k: int) -> float:
    """How often any evidence is among the first ``k`` units."""
    return fmean(_share_within([_first(answer.verdict)], k) for answer in answers)


def session_hit(answers: Iterable[Answer], k: int) -> float:
    """How often any evidence session is among the first ``k`` sessions."""
    return fmean(_share_within([answer.verdict.session_rank], k) for answer in answers)


def reciprocal_rank(answers: Iterable[Answer]) -> float:
    """Mean of 1 / rank of the first evidence, 0 where there is none."""
    firsts = (_first(answer.verdict) for answer in answers)
    return fmean(0.0 if first is None else 1 / first for first in firsts)


def _first(found: Verdict) -> int | None:
    return min((rank for rank in found.ranks if rank is not None), default=None)


def _share_within(places: Sequence[float | None], most: float) -> float:
    return sum(place is not None and place <= most for place in places) / len(places)
