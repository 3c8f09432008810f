"""Many replies become one list: each memory once, best first."""

from collections.abc import Iterable, Iterator

from memory_gateway.engine.schemas import MemoryKey, MemoryType, RawItem, SearchReply
from memory_gateway.gateway.memories.found import Found
from memory_gateway.gateway.memories.schemas import Scope
from memory_gateway.gateway.memories.texts import text_of

UNCOUNTED: frozenset[MemoryType] = frozenset({"profile", "unprocessed_message"})
"""What comes along whatever was asked: it neither counts against ``top_k`` nor has to match the query."""


def found_in(scope: Scope, reply: SearchReply) -> Iterator[Found]:
    """The reply's items, in the upstream's order."""
    arrays: dict[MemoryType, list[RawItem]] = {
        "episode": reply.episodes,
        "profile": reply.profiles,
        "agent_case": reply.agent_cases,
        "agent_skill": reply.agent_skills,
        "unprocessed_message": reply.unprocessed_messages,
    }
    for memory_type, items in arrays.items():
        for raw in items:
            yield found(scope, MemoryKey(memory_type, raw["id"]), raw)


def found(scope: Scope, key: MemoryKey, raw: RawItem) -> Found:
    """One raw item with what is read from it."""
    session_id, score = raw.get("session_id"), raw.get("score")
    return Found(
        scope=scope,
        key=key,
        raw=raw,
        session_id=session_id if isinstance(session_id, str) else None,
        score=float(score) if isinstance(score, int | float) else None,
        text=text_of(key.memory_type, raw),
    )


def merged(replies: Iterable[Iterable[Found]]) -> list[Found]:
    """Each memory once: where several scopes found it, the entry of the first, most specific one."""
    first: dict[MemoryKey, Found] = {}
    for reply in replies:
        for one in reply:
            first.setdefault(one.key, one)
    return list(first.values())


def best(memories: Iterable[Found], top_k: int) -> list[Found]:
    """Best score first, without a score last, otherwise as they came; at most ``top_k`` (-1: all) that count.

    Of equal scores the user's own text comes first: the user knew better.
    """
    ranked = sorted(memories, key=lambda one: (one.score is None, -(one.score or 0.0), one.override is None))
    return ranked if top_k == -1 else list(_cut(ranked, top_k))


def best_of(memories: Iterable[Found]) -> float | None:
    """The best score among them, None where none has one."""
    return max((one.score for one in memories if one.score is not None), default=None)


def _cut(ranked: list[Found], top_k: int) -> Iterator[Found]:
    for one in ranked:
        if one.key.memory_type in UNCOUNTED:
            yield one
        elif top_k > 0:
            top_k -= 1
            yield one


def counted(memories: Iterable[Found]) -> int:
    """How many of them count against ``top_k``."""
    return sum(one.key.memory_type not in UNCOUNTED for one in memories)
