"""The simple memory behind `RecordingUpstream`: sessions become episodes, words are matched as substrings."""

from collections import Counter
from datetime import UTC, datetime
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from memory_gateway.engine.schemas import (
    AddReply,
    AddRequest,
    Caller,
    FlushReply,
    FlushRequest,
    GetReply,
    GetRequest,
    MemoryKey,
    MemoryType,
    Message,
    SearchReply,
    SearchRequest,
)
from memory_gateway.kit.errors import UpstreamRefused
from memory_gateway.kit.text import fold
from memory_gateway.upstream.port import Erasure, UpstreamTraits
from tests.fakes import items

RawItem = dict[str, Any]
ARRAYS = {
    "episode": "episodes",
    "profile": "profiles",
    "agent_case": "agent_cases",
    "agent_skill": "agent_skills",
    "unprocessed_message": "unprocessed_messages",
}
TEXT_KEYS = ("episode", "summary", "task_intent", "approach", "name", "description", "content")


class Place(Struct, frozen=True):
    """One session. ``space`` is the caller where callers have spaces of their own, else empty."""

    space: str
    app_id: str
    project_id: str
    session_id: str


class Held(Struct, frozen=True):
    space: str
    memory_type: MemoryType
    owner: str
    item: RawItem


class SimpleMemory:
    """Honest about who owns what and what a filter lets through; scores are the share of query words found."""

    def __init__(self, traits: UpstreamTraits) -> None:
        self._own_spaces = traits.leaves_out_hidden
        self._buffers: dict[Place, list[Message]] = {}
        self._closed: list[Held] = []
        self._extractions: Counter[Place] = Counter()

    def plant(self, memory_type: MemoryType, item: RawItem, *, space: str = "") -> None:
        """Hold this item as if it had been extracted. ``space``: the caller's user id with `EMBEDDED_LIKE`."""
        owner = item["agent_id"] if "agent_id" in item else item["user_id"]
        self._closed.append(Held(space if self._own_spaces else "", memory_type, owner, item))

    def add(self, request: AddRequest, caller: Caller) -> AddReply:
        place = Place(self._space(caller), request.app_id, request.project_id, request.session_id)
        self._buffers.setdefault(place, []).extend(request.messages)
        return AddReply(len(request.messages), "accumulated")

    def flush(self, request: FlushRequest, caller: Caller) -> FlushReply:
        place = Place(self._space(caller), request.app_id, request.project_id, request.session_id)
        return FlushReply("extracted" if self._close(place) else "no_extraction")

    def search(self, request: SearchRequest, caller: Caller) -> SearchReply:
        self._refuse_agent_filters(request.agent_id, request.filters)
        wanted: tuple[MemoryType, ...] = ("episode",)
        if isinstance(request.agent_id, str):
            wanted = ("agent_case", "agent_skill")
        found = {ARRAYS[kind]: self._ranked(kind, request, caller) for kind in wanted}
        if request.include_profile and isinstance(request.user_id, str):
            found["profiles"] = [held.item for held in self._visible("profile", request, caller, UNSET)]
        return SearchReply(**found, unprocessed_messages=self._unprocessed(request, caller))

    def get(self, request: GetRequest, caller: Caller) -> GetReply:
        visible = self._visible(request.memory_type, request, caller, request.filters)
        rows = [{k: v for k, v in held.item.items() if k not in {"score", "atomic_facts"}} for held in visible]
        rows.sort(key=lambda item: str(item.get("timestamp", "")), reverse=request.sort_order == "desc")
        page = rows[(request.page - 1) * request.page_size :][: request.page_size]
        return GetReply(**{ARRAYS[request.memory_type]: page}, total_count=len(rows), count=len(page))

    def seal(self, app_id: str, project_id: str, memory: MemoryKey, caller: Caller) -> None:
        for place in [place for place in self._buffers if place.space == self._space(caller)]:
            in_scope = (place.app_id, place.project_id) == (app_id, project_id)
            if in_scope and any(held.item["id"] == memory.memory_id for held in self._extract(place)):
                self._close(place)

    def within(self, request: SearchRequest, episode_ids: list[str], caller: Caller) -> frozenset[str] | None:
        if not self._own_spaces:
            return None
        kept = {held.item["id"] for held in self._visible("episode", request, caller, request.filters)}
        return frozenset(kept & set(episode_ids))

    def erase(self, user_id: str) -> Erasure:
        if not self._own_spaces:
            return Erasure(False, "the upstream keeps every memory: it has no delete")
        self._closed = [held for held in self._closed if held.space != user_id]
        self._buffers = {place: rows for place, rows in self._buffers.items() if place.space != user_id}
        return Erasure(True)

    def export(self, user_id: str) -> list[RawItem]:
        held_now = self._held() if self._own_spaces else []
        return [{"kind": held.memory_type, **held.item} for held in held_now if held.space == user_id]

    def _space(self, caller: Caller) -> str:
        return (caller.user_id or "") if self._own_spaces else ""

    def _held(self) -> list[Held]:
        growing = list(self._buffers) if self._own_spaces else []
        return self._closed + [held for place in growing for held in self._extract(place)]

    def _close(self, place: Place) -> bool:
        extracted = self._extract(place)
        self._extractions[place] += 1
        self._closed.extend(extracted)
        self._buffers.pop(place, None)
        return bool(extracted)

    def _extract(self, place: Place) -> list[Held]:
        messages = self._buffers.get(place, [])
        owners = dict.fromkeys(message.sender_id for message in messages if message.role == "user")
        agents = dict.fromkeys(message.sender_id for message in messages if message.tool_calls)
        episodes = [Held(place.space, "episode", owner, self._episode(place, owner, messages)) for owner in owners]
        return episodes + [
            Held(place.space, "agent_case", agent, self._case(place, agent, messages)) for agent in agents
        ]

    def _episode(self, place: Place, owner: str, messages: list[Message]) -> RawItem:
        return items.episode(
            f"{owner}_ep_{self._extractions[place]:08d}_{place.session_id}",
            user_id=owner,
            session_id=place.session_id,
            text="\n".join(f"{_speaker(message)}: {_text(message)}" for message in messages),
            timestamp=_iso(messages[-1].timestamp),
            sender_ids=tuple(dict.fromkeys(message.sender_id for message in messages)),
            app_id=place.app_id,
            project_id=place.project_id,
        )

    def _case(self, place: Place, agent: str, messages: list[Message]) -> RawItem:
        return items.agent_case(
            f"{agent}_ac_{self._extractions[place]:08d}_{place.session_id}",
            agent_id=agent,
            session_id=place.session_id,
            task_intent=next((_text(message) for message in messages if message.role == "user"), ""),
            approach="\n".join(call.function.name for message in messages for call in message.tool_calls or ()),
            timestamp=_iso(messages[-1].timestamp),
            app_id=place.app_id,
            project_id=place.project_id,
        )

    def _visible(
        self, kind: MemoryType, request: SearchRequest | GetRequest, caller: Caller, filters: dict[str, Any] | UnsetType
    ) -> list[Held]:
        owner = request.user_id if isinstance(request.user_id, str) else request.agent_id
        space = self._space(caller)
        return [
            held
            for held in self._held()
            if (held.space, held.memory_type, held.owner) == (space, kind, owner)
            and (held.item["app_id"], held.item["project_id"]) == (request.app_id, request.project_id)
            and (filters is UNSET or _keeps(filters or {}, held.item))
            and not self._left_out(held, caller)
        ]

    def _left_out(self, held: Held, caller: Caller) -> bool:
        key = MemoryKey(held.memory_type, held.item["id"])
        hidden = key in caller.hidden or key in caller.left_out
        return self._own_spaces and (hidden or held.item.get("session_id") in caller.hidden_sessions)

    def _ranked(self, kind: MemoryType, request: SearchRequest, caller: Caller) -> list[RawItem]:
        visible = self._visible(kind, request, caller, request.filters)
        scored = [{**held.item, "score": _score(request.query, held.item)} for held in visible]
        matching = sorted((item for item in scored if item["score"] > 0), key=lambda item: -item["score"])
        return matching[: 100 if request.top_k == -1 else request.top_k]

    def _unprocessed(self, request: SearchRequest, caller: Caller) -> list[RawItem]:
        """As on EverOS: only for a plain session id at the top level, and whoever asks."""
        session_id = request.filters.get("session_id") if isinstance(request.filters, dict) else None
        if not isinstance(session_id, str) or (self._own_spaces and session_id in caller.hidden_sessions):
            return []
        place = Place(self._space(caller), request.app_id, request.project_id, session_id)
        return [_buffered(place, index, message) for index, message in enumerate(self._buffers.get(place, []))]

    def _refuse_agent_filters(self, agent_id: str | UnsetType, filters: dict[str, Any] | UnsetType) -> None:
        asks_more = isinstance(filters, dict) and set(filters) != {"session_id"}
        if isinstance(agent_id, str) and asks_more and not self._own_spaces:
            raise UpstreamRefused(500, "INTERNAL_ERROR", "the upstream failed")


def _keeps(node: dict[str, Any], item: RawItem) -> bool:
    return all(_keeps_clause(name, clause, item) for name, clause in node.items())


def _keeps_clause(name: str, clause: Any, item: RawItem) -> bool:
    if name == "AND":
        return all(_keeps(part, item) for part in clause)
    if name == "OR":
        return not clause or any(_keeps(part, item) for part in clause)
    if name not in {"session_id", "sender_id", "timestamp", "parent_type", "parent_id"}:
        raise UpstreamRefused(422, "INVALID_INPUT", f"unsupported filter field: {name!r}")
    operators = clause if isinstance(clause, dict) else {"eq": clause}
    return clause is None or all(_test(name, operator, value, item) for operator, value in operators.items())


def _test(name: str, operator: str, value: Any, item: RawItem) -> bool:
    if operator == "in":
        if not value:
            raise UpstreamRefused(422, "INVALID_INPUT", f"value for {name!r} with 'in' must be a non-empty list")
        return any(_test(name, "eq", one, item) for one in value)
    if name == "sender_id":
        return value in item.get("sender_ids", [])
    found = item.get(name)
    if name == "timestamp" and isinstance(value, int):
        value = _iso(value)
    if found is None:
        return False
    outcomes: dict[str, bool] = {
        "eq": found == value,
        "ne": found != value,
        "gt": found > value,
        "gte": found >= value,
        "lt": found < value,
        "lte": found <= value,
    }
    return outcomes[operator]


def _score(query: str, item: RawItem) -> float:
    text = fold(" ".join(str(item[key]) for key in TEXT_KEYS if item.get(key)))
    words = fold(query).split()
    return sum(word in text for word in words) / len(words) if words else 0.0


def _text(message: Message) -> str:
    if isinstance(message.content, str):
        return message.content
    return " ".join(part.text or f"[{part.type.upper()}: {part.name or ''}]" for part in message.content)


def _speaker(message: Message) -> str:
    return message.sender_name or message.sender_id


def _iso(epoch_ms: int) -> str:
    return f"{datetime.fromtimestamp(epoch_ms / 1000, UTC):%Y-%m-%dT%H:%M:%S}Z"


def _buffered(place: Place, index: int, message: Message) -> RawItem:
    return items.unprocessed_message(
        f"m_{place.session_id}_{message.timestamp}_{index:03d}",
        session_id=place.session_id,
        sender_id=message.sender_id,
        sender_name=message.sender_name,
        role=message.role,
        content=_text(message),
        timestamp=_iso(message.timestamp),
        tool_call_id=message.tool_call_id,
        app_id=place.app_id,
        project_id=place.project_id,
    )
