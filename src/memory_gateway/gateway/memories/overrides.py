"""An override's words are searched like a memory's: what matches only the replaced words is not shown."""

from functools import lru_cache

from msgspec import UNSET, Struct, UnsetType

from memory_gateway.engine.analysis import content_terms, index_terms
from memory_gateway.engine.schemas import MemoryKey
from memory_gateway.gateway.memories.scopes import Question
from memory_gateway.kit.text import fold


class Override(Struct, frozen=True):
    """The user's own text for a memory. ``session_id`` is that of the memory."""

    key: MemoryKey
    text: str
    session_id: str | None


class QueryWords(Struct, frozen=True):
    """A query made ready for matching. ``terms`` has no stop words, unless the query has nothing else."""

    terms: frozenset[str]
    folded: str


def query_words(query: str) -> QueryWords:
    return QueryWords(frozenset(content_terms(query)), fold(query).strip())


def share(words: QueryWords, text: str) -> float:
    """How much of the query the text holds: 1 for all its terms or for the query as it is written, 0 for none."""
    if words.folded in fold(text):
        return 1.0
    if not words.terms:
        return 0.0
    return len(words.terms & _terms_of(text)) / len(words.terms)


@lru_cache(maxsize=1024)
def _terms_of(text: str) -> frozenset[str]:
    return frozenset(index_terms(text))


def score(share_of_query: float, best_upstream_score: float | None) -> float:
    """What an override's words are worth: their share of the best score the upstream gave, 1 where it gave none."""
    best = best_upstream_score if best_upstream_score is not None and best_upstream_score > 0 else 1.0
    return share_of_query * best


def floor(asked: Question) -> float:
    """The score below which the method drops hits; only methods that score by meaning have one."""
    limits: dict[str, float | UnsetType] = {"vector": asked.radius, "hybrid": asked.min_score}
    limit = limits.get(asked.method, UNSET)
    return 0.0 if limit is UNSET else limit
