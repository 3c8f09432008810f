"""EverOS's filter grammar: parsed once, strictly, then asked of whole episodes.

node   := { ["AND": [node*]], ["OR": [node*]], field: clause, ... }      siblings are ANDed
clause := scalar (equality) | { operator: value, ... } (several operators are ANDed)
"""

import operator
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from memory_gateway.engine.pieces import normal_timestamp
from memory_gateway.kit.errors import UpstreamRefused

Test = Callable[["FilteredEpisode"], bool]

PARENT_TYPE = "memcell"
_RESERVED = frozenset({"owner_id", "owner_type", "app_id", "project_id"})
_STRING_FIELDS = frozenset({"session_id", "parent_type", "parent_id"})
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}
_OPERATORS = frozenset({*_COMPARISONS, "in"})
_SENDER_OPERATORS = frozenset({"eq", "in"})
_DEEPEST = 200
_MOST_CONDITIONS = 1_000
_VALUES_A_CONDITION = 20  # so many values of an `in` cost about what a condition costs


class FilteredEpisode(Struct, frozen=True):
    """What a filter can ask of an episode."""

    session_id: str
    timestamp_ms: int
    senders: frozenset[str]
    parent_id: str


class Filter(Struct, frozen=True):
    """A parsed filter. ``sessions``: the only sessions it can keep, where it says so plainly; else None."""

    test: Test
    sessions: frozenset[str] | None = None


def refused(message: str) -> UpstreamRefused:
    """EverOS's answer to a fault in a request."""
    return UpstreamRefused(422, "INVALID_INPUT", message)


def parse_filter(node: dict[str, Any]) -> Filter | None:
    """None where nothing is restricted. Raises `UpstreamRefused` (422) naming what is wrong."""
    if node == {}:
        return None
    if _breadth(node) > _MOST_CONDITIONS:
        raise refused("filters have too many conditions")
    return _node(node, "filters", 0)


def plain_session(node: dict[str, Any]) -> str | None:
    """The session of a top-level plain ``session_id``, the only form that brings unprocessed messages."""
    session = node.get("session_id")
    return session if isinstance(session, str) else None


def _breadth(root: Any) -> int:
    """How many conditions there are; without recursion, for it runs before the depth is known."""
    waiting, count = [root], 0
    while waiting and count <= _MOST_CONDITIONS:
        node = waiting.pop()
        if isinstance(node, dict):
            count += len(node) + sum(
                len(clause["in"]) // _VALUES_A_CONDITION for clause in node.values() if _has_list(clause)
            )
            waiting.extend(part for key in ("AND", "OR") if isinstance(node.get(key), list) for part in node[key])
    return count


def _has_list(clause: Any) -> bool:
    return isinstance(clause, dict) and isinstance(clause.get("in"), list)


def _node(node: Any, path: str, depth: int) -> Filter | None:
    if not isinstance(node, dict):
        raise refused(f"Input should be a valid dictionary or object to extract fields from: {path}")
    if depth > _DEEPEST:
        raise refused("filters are nested too deeply")
    parts: list[Filter | None] = []
    for key, value in node.items():
        if value is None:
            continue
        if key in {"AND", "OR"}:
            parts.append(_group(key, value, f"{path}.{key}", depth))
        else:
            parts.append(_field(key, value))
    return _all([part for part in parts if part is not None])


def _group(key: str, nodes: Any, path: str, depth: int) -> Filter | None:
    if not isinstance(nodes, list):
        raise refused(f"Input should be a valid list: {path}")
    parts = [_node(node, f"{path}.{place}", depth + 1) for place, node in enumerate(nodes)]
    restricting = [part for part in parts if part is not None]
    return _all(restricting) if key == "AND" else _any(restricting)


def _all(parts: list[Filter]) -> Filter | None:
    if len(parts) < 2:
        return parts[0] if parts else None
    limits = [part.sessions for part in parts if part.sessions is not None]
    tests = [part.test for part in parts]
    return Filter(
        lambda episode: all(test(episode) for test in tests), frozenset.intersection(*limits) if limits else None
    )


def _any(parts: list[Filter]) -> Filter | None:
    if len(parts) < 2:
        return parts[0] if parts else None
    limits = [part.sessions for part in parts]
    tests = [part.test for part in parts]
    known = [limit for limit in limits if limit is not None]
    return Filter(
        lambda episode: any(test(episode) for test in tests),
        frozenset.union(*known) if len(known) == len(limits) else None,
    )


def _field(name: str, clause: Any) -> Filter | None:
    if name in _RESERVED:
        raise refused(f"filter field '{name}' is reserved; pass it at the top of the request")
    if name not in _STRING_FIELDS and name not in {"timestamp", "sender_id"}:
        raise refused(f"unsupported filter field: '{name}'")
    if not isinstance(clause, dict):
        return _condition(name, "eq", clause)
    if not clause:
        raise refused(f"empty operator map for field '{name}'")
    return _all([_condition(name, op, value) for op, value in clause.items()])


def _condition(name: str, op: str, value: Any) -> Filter:
    if op not in _OPERATORS:
        raise refused(f"unsupported operator '{op}' on field '{name}'")
    if name == "sender_id" and op not in _SENDER_OPERATORS:
        raise refused(f"operator '{op}' is not supported on array field 'sender_id'")
    if op == "in":
        if not isinstance(value, list) or not value:
            raise refused(f"value for '{name}' with 'in' must be a non-empty list")
        wanted = frozenset(_value(name, part) for part in value)
    else:
        wanted = frozenset({_value(name, value)})
    sessions = wanted if name == "session_id" and op in {"eq", "in"} else None
    return Filter(_test(name, op, wanted), sessions)


def _test(name: str, op: str, wanted: frozenset[Any]) -> Test:
    if name == "sender_id":
        return lambda episode: not episode.senders.isdisjoint(wanted)
    read = _READERS[name]
    if op == "in":
        return lambda episode: read(episode) in wanted
    compare, (value,) = _COMPARISONS[op], wanted
    return lambda episode: compare(read(episode), value)


_READERS: dict[str, Callable[[FilteredEpisode], Any]] = {
    "session_id": lambda episode: episode.session_id,
    "timestamp": lambda episode: episode.timestamp_ms,
    "parent_type": lambda _: PARENT_TYPE,
    "parent_id": lambda episode: episode.parent_id,
}


def _value(name: str, value: Any) -> Any:
    if name == "timestamp":
        return _moment(value)
    if not isinstance(value, str):
        raise refused(f"value for '{name}' must be a string")
    return value


def _moment(value: Any) -> int:
    """Epoch milliseconds from a number (seconds below 1e12) or an ISO 8601 text (UTC where it names no zone)."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            moment = datetime.fromtimestamp(normal_timestamp(round(value)) / 1000, UTC)
        else:
            moment = datetime.fromisoformat(value)
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return round(aware.timestamp() * 1000)
    except (TypeError, ValueError, OverflowError, OSError):
        raise refused("timestamp value for 'timestamp' must be ms or ISO string") from None
