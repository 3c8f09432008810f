"""One search: owner and filter choose the segments, the ranking orders them, items are made of the best."""

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

from msgspec import UNSET, Struct, structs

from memory_gateway.engine import store
from memory_gateway.engine.cases import SKILL_CASES, AgentCase
from memory_gateway.engine.filters import Filter, parse_filter, plain_session
from memory_gateway.engine.held import Held
from memory_gateway.engine.held_episodes import segments_numbered, turns_of
from memory_gateway.engine.items import (
    ItemPlace,
    ReadyEpisode,
    case_item,
    ready_episode,
    skill_item,
    unprocessed_item,
)
from memory_gateway.engine.people import Naming
from memory_gateway.engine.ranking import QUERY_CHARS, Query, RankedSegment, named_in, rank
from memory_gateway.engine.recall import (
    Concealed,
    Segment,
    SpaceView,
    concealed_elsewhere,
    concealed_of,
    segments_within,
)
from memory_gateway.engine.schemas import Caller, MemoryKey, RawItem, SearchReply, SearchRequest
from memory_gateway.engine.segments import Turn
from memory_gateway.storage.port import Reads, Transaction

MOST_EPISODES = 100
MOST_AGENT_ITEMS = 10


class Scope(Struct, frozen=True):
    """What one search or listing may see of one space. ``segments`` is None for all but the concealed."""

    space_no: int
    concealed: Concealed
    segments: dict[int, Segment] | None
    place: ItemPlace


def owner_of(user_id: Any, agent_id: Any) -> str:
    """The owner named by a request, a user's or an agent's id."""
    return str(agent_id if user_id is UNSET else user_id)


async def own_space(reads: Reads, caller: Caller, app_id: str, project_id: str) -> int | None:
    """The caller's space in an app and project, None before anything was written there."""
    params = {"user_id": caller.user_id or "", "app_id": app_id, "project_id": project_id}
    row = await reads.fetch_one(store.FIND_SPACE, params)
    return None if row is None else int(row[0])


async def open_scopes(
    transaction: Transaction, place: ItemPlace, wanted: Filter | None, caller: Caller, *, of_agent: bool
) -> list[Scope]:
    """What the caller's own space holds; for an agent that is shared, what every space in which it has cases holds."""
    own = await own_space(transaction, caller, place.app_id, place.project_id)
    scopes = [] if own is None else [await open_scope(transaction, own, place, wanted, caller, of_agent=of_agent)]
    if of_agent and caller.shared_agents:
        params = {"agent_id": place.owner_id, "app_id": place.app_id, "project_id": place.project_id}
        for (space_no,) in await transaction.fetch(store.SPACES_OF_AGENT, params):
            if space_no != own:
                scopes.append(await _open_shared_scope(transaction, space_no, place, wanted, caller))
    return scopes


async def _open_shared_scope(
    transaction: Transaction, space_no: int, place: ItemPlace, wanted: Filter | None, caller: Caller
) -> Scope:
    concealed = concealed_elsewhere(space_no, caller, place.owner_id)
    found = await segments_within(transaction, space_no, wanted, concealed)
    elsewhere = structs.replace(place, space_no=space_no)
    return Scope(space_no, concealed, {segment.segment_no: segment for segment in found}, elsewhere)


async def open_scope(
    transaction: Transaction,
    space_no: int,
    place: ItemPlace,
    wanted: Filter | None,
    caller: Caller,
    *,
    of_agent: bool = False,
) -> Scope:
    """What the filter keeps and the caller owns and has not deleted."""
    concealed = await concealed_of(transaction, space_no, caller, place.owner_id if of_agent else None)
    if wanted is None and place.owner_id == caller.user_id:
        return Scope(space_no, concealed, None, place)
    found = await segments_within(transaction, space_no, wanted, concealed)
    return Scope(space_no, concealed, {segment.segment_no: segment for segment in found}, place)


async def load_segments(transaction: Transaction, scope: Scope) -> dict[int, Segment]:
    """All segments in the scope, by number."""
    if scope.segments is not None:
        return scope.segments
    found = await segments_within(transaction, scope.space_no, None, scope.concealed)
    return {segment.segment_no: segment for segment in found}


class Opened(Struct, frozen=True):
    """The caller's own space, opened for one request: what may be seen, whom the query names there, and which episodes
    are not to be in the answer."""

    scope: Scope
    view: SpaceView
    named: Naming
    left_out: frozenset[str]


async def open_for(transaction: Transaction, request: SearchRequest, caller: Caller, held: Held) -> Opened | None:
    """Before the query is embedded: without the names of those who speak in what it may see of the own space."""
    for scope in await _scopes(transaction, request, caller):
        if scope.place.space_no is None:
            if request.agent_id is UNSET:
                view = await _episodes_view(transaction, scope, caller, held)
            else:
                cases = await cases_within(transaction, scope)
                view = await held.views.of(transaction, scope.space_no, sorted(cases), scope.concealed)
            named = await named_in(transaction, view, request.query[:QUERY_CHARS])
            return Opened(scope, view, named, frozenset(_left_out(caller)))
    return None


async def search(
    transaction: Transaction,
    request: SearchRequest,
    query: Query,
    caller: Caller,
    held: Held,
    *,
    opened: Opened | None = None,
) -> SearchReply:
    """Answer one request on one snapshot. ``opened`` on another snapshot spares opening the space again."""
    if request.agent_id is not UNSET:
        return await _search_agent(transaction, request, query, caller, held)
    if opened is None or not await _is_unchanged(transaction, opened, held):
        opened = await open_for(transaction, request, caller, held)
    reply = SearchReply()
    if opened is not None:
        ranked = await rank(transaction, opened.view, query, held, opened.named)
        most = MOST_EPISODES if request.top_k == -1 else request.top_k
        reply.episodes.extend(await _episodes(transaction, opened, ranked, most, held))
        if (session_id := plain_session(filters_of(request))) is not None:
            reply.unprocessed_messages.extend(await unprocessed(transaction, opened.scope, session_id))
    return reply


async def _is_unchanged(transaction: Transaction, opened: Opened, held: Held) -> bool:
    return await held.columns.of(transaction, opened.scope.space_no) is opened.view.columns


async def _search_agent(
    transaction: Transaction, request: SearchRequest, query: Query, caller: Caller, held: Held
) -> SearchReply:
    session_id = plain_session(filters_of(request))
    reply = SearchReply()
    for scope in await _scopes(transaction, request, caller):
        found = await cases_within(transaction, scope)
        view = await held.views.of(transaction, scope.space_no, sorted(found), scope.concealed)
        scores = {one.segment_no: one.score for one in await rank(transaction, view, query, held)}
        cases, skills = await _agent_items(transaction, scope, found, scores, caller)
        reply.agent_cases.extend(cases)
        reply.agent_skills.extend(skills)
        if session_id is not None and scope.place.space_no is None:
            words = structs.replace(scope, concealed=await concealed_of(transaction, scope.space_no, caller))
            reply.unprocessed_messages.extend(await unprocessed(transaction, words, session_id))
    _cut_agent_items(reply, request.top_k)
    return reply


async def _scopes(transaction: Transaction, request: SearchRequest, caller: Caller) -> list[Scope]:
    place = ItemPlace(owner_of(request.user_id, request.agent_id), request.app_id, request.project_id)
    wanted = parse_filter(filters_of(request))
    return await open_scopes(transaction, place, wanted, caller, of_agent=request.agent_id is not UNSET)


def filters_of(request: SearchRequest) -> dict[str, Any]:
    """What the client asks of episodes; nothing where it asks for nothing."""
    return {} if request.filters is UNSET else request.filters


async def _episodes_view(transaction: Transaction, scope: Scope, caller: Caller, held: Held) -> SpaceView:
    owned: list[int] | None = None
    if scope.segments is not None:
        owned = [number for number, segment in scope.segments.items() if owns(segment, scope.place, caller)]
    return await held.views.of(transaction, scope.space_no, owned, scope.concealed)


async def _episodes(
    transaction: Transaction, opened: Opened, ranked: Iterator[RankedSegment], most: int, held: Held
) -> list[RawItem]:
    items: list[RawItem] = []
    while len(items) < most and (best := list(islice(ranked, most - len(items)))):
        ready = await _ready(transaction, opened, [one.segment_no for one in best], held)
        found = [ready[one.segment_no].scored(one.score, one.turns) for one in best if one.segment_no in ready]
        items += [item for item in found if item["id"] not in opened.left_out]
    return items


def _left_out(caller: Caller) -> Iterator[str]:
    return (key.memory_id for key in caller.left_out if key.memory_type == "episode")


async def _ready(transaction: Transaction, opened: Opened, numbers: list[int], held: Held) -> dict[int, ReadyEpisode]:
    """These episodes of the scope, without what is hidden of them; one that is hidden whole is left out."""
    scope = opened.scope
    ready = await held.episodes.of(transaction, scope.space_no, scope.place, numbers, len(opened.view.columns))
    partly_hidden = [number for number in ready if not scope.concealed.turns.isdisjoint(ready[number].facts)]
    if partly_hidden:
        said = await turns_of(transaction, scope.space_no, partly_hidden)
        for segment in await segments_numbered(transaction, scope.space_no, partly_hidden):
            del ready[segment.segment_no]
            if shown := _shown(scope, said[segment.segment_no]):
                ready[segment.segment_no] = ready_episode(scope.place, segment, shown, partly_hidden=True)
    return ready


def owns(segment: Segment, place: ItemPlace, caller: Caller) -> bool:
    """The caller owns what was written in the caller's own sessions; others own what they said as users."""
    return place.owner_id == caller.user_id or place.owner_id in json.loads(segment.owners)


async def visible_turns(transaction: Transaction, scope: Scope, segment_no: int) -> tuple[list[Turn], bool]:
    """A segment's turns without the hidden ones, and whether any was hidden."""
    params = {"space_no": scope.space_no, "segment_no": segment_no}
    every = [Turn(*row) for row in await transaction.fetch(store.TURNS_OF_SEGMENT, params)]
    shown = _shown(scope, every)
    return shown, len(shown) < len(every)


def _shown(scope: Scope, turns: list[Turn]) -> list[Turn]:
    return [turn for turn in turns if turn.turn_no not in scope.concealed.turns]


async def cases_within(transaction: Transaction, scope: Scope) -> dict[int, AgentCase]:
    """The agent's cases whose segments may be seen, by segment. A case built on a hidden turn is hidden."""
    params = {"space_no": scope.space_no, "agent_id": scope.place.owner_id}
    found = (AgentCase(*row) for row in await transaction.fetch(store.CASES_OF_AGENT, params))
    segments = await load_segments(transaction, scope)
    seen = {case.segment_no: case for case in found if case.segment_no in segments}
    if not scope.concealed.turns:
        return seen
    return {number: case for number, case in seen.items() if not (await visible_turns(transaction, scope, number))[1]}


def skills_within(scope: Scope, found: dict[int, AgentCase]) -> list[list[AgentCase]]:
    """The cases of each skill: three or more that went the same way."""
    groups: dict[int, list[AgentCase]] = {}
    for case in found.values():
        groups.setdefault(case.skill_no, []).append(case)
    return [
        group for number, group in groups.items() if len(group) >= SKILL_CASES and number not in scope.concealed.skills
    ]


async def _agent_items(
    transaction: Transaction, scope: Scope, found: dict[int, AgentCase], scores: dict[int, float], caller: Caller
) -> tuple[list[RawItem], list[RawItem]]:
    """Cases, and skills by the best of their cases."""
    segments = await load_segments(transaction, scope)
    cases = [
        {**case_item(scope.place, segments[number], found[number]), "score": score} for number, score in scores.items()
    ]
    skills = [
        {**skill_item(scope.place, group, segments), "score": max(scores.get(case.segment_no, 0.0) for case in group)}
        for group in skills_within(scope, found)
    ]
    return (
        [item for item in cases if MemoryKey("agent_case", item["id"]) not in caller.left_out],
        [item for item in skills if item["score"] > 0 and MemoryKey("agent_skill", item["id"]) not in caller.left_out],
    )


def _cut_agent_items(reply: SearchReply, top_k: int) -> None:
    most = MOST_AGENT_ITEMS if top_k == -1 else top_k
    for items in (reply.agent_cases, reply.agent_skills):
        items.sort(key=lambda item: -item["score"])
        del items[most:]


async def unprocessed(transaction: Transaction, scope: Scope, session_id: str) -> list[RawItem]:
    """The messages of the session's open segment, oldest first, whatever else the filter asks."""
    params = {"space_no": scope.space_no, "session_id": session_id}
    segments = [Segment(*row) for row in await transaction.fetch(store.SEGMENTS_OF_SESSION, params)]
    if not segments or not segments[-1].is_open or segments[-1].segment_no in scope.concealed.segments:
        return []
    place = {"space_no": scope.space_no, "segment_no": segments[-1].segment_no}
    rows = await transaction.fetch(store.MESSAGES_OF_SEGMENT, place)
    return [
        unprocessed_item(scope.place, session_id, row)
        for row in rows
        if not await _is_hidden(transaction, scope, row[0])
    ]


async def _is_hidden(transaction: Transaction, scope: Scope, message_no: int) -> bool:
    """Deleted itself, or with an episode that holds a part of it: a long message spans several."""
    if message_no in scope.concealed.messages:
        return True
    if not scope.concealed.segments:
        return False
    params = {"space_no": scope.space_no, "message_no": message_no}
    rows = await transaction.fetch(store.SEGMENTS_OF_MESSAGE, params)
    return any(segment_no in scope.concealed.segments for (segment_no,) in rows)
