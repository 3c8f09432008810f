"""Pages of memories in order of time: EverOS's ``memory/get``."""

from typing import TypeVar

from msgspec import UNSET

from memory_gateway.engine.cases import AgentCase
from memory_gateway.engine.filters import parse_filter
from memory_gateway.engine.items import ItemPlace, case_item, episode_item, skill_item
from memory_gateway.engine.recall import Segment
from memory_gateway.engine.schemas import Caller, GetReply, GetRequest, RawItem
from memory_gateway.engine.search import (
    Scope,
    cases_within,
    load_segments,
    open_scopes,
    owner_of,
    owns,
    skills_within,
    visible_turns,
)
from memory_gateway.storage.port import Transaction

T = TypeVar("T")


async def get(transaction: Transaction, request: GetRequest, caller: Caller) -> GetReply:
    """One page of one kind of stored memory, on one snapshot. Profiles are not stored here."""
    of_agent = request.agent_id is not UNSET
    place = ItemPlace(owner_of(request.user_id, request.agent_id), request.app_id, request.project_id)
    wanted = parse_filter({} if request.filters is UNSET else request.filters)
    scopes = await open_scopes(transaction, place, wanted, caller, of_agent=of_agent)
    if request.memory_type == "episode":
        return await _episodes(transaction, scopes, request, caller)
    if request.memory_type == "agent_case":
        return await _cases(transaction, scopes, request)
    return await _skills(transaction, scopes, request)


def _page(items: list[T], request: GetRequest) -> list[T]:
    first = (request.page - 1) * request.page_size
    return items[first : first + request.page_size]


def _moment(segment: Segment, request: GetRequest) -> tuple[int, int]:
    return (segment.last_ms if request.sort_by == "timestamp" else segment.updated_ms, segment.segment_no)


async def _episodes(transaction: Transaction, scopes: list[Scope], request: GetRequest, caller: Caller) -> GetReply:
    found = [
        (scope, segment)
        for scope in scopes
        for segment in (await load_segments(transaction, scope)).values()
        if owns(segment, scope.place, caller) and await _shows(transaction, scope, segment)
    ]
    found.sort(key=lambda pair: _moment(pair[1], request), reverse=request.sort_order == "desc")
    items: list[RawItem] = []
    for scope, segment in _page(found, request):
        turns, partly_hidden = await visible_turns(transaction, scope, segment.segment_no)
        items.append(episode_item(scope.place, segment, turns, partly_hidden=partly_hidden))
    return GetReply(episodes=items, total_count=len(found), count=len(items))


async def _shows(transaction: Transaction, scope: Scope, segment: Segment) -> bool:
    """Whether any turn is left; only a caller who deleted single messages has to look."""
    if not scope.concealed.turns:
        return True
    turns, _ = await visible_turns(transaction, scope, segment.segment_no)
    return bool(turns)


async def _cases(transaction: Transaction, scopes: list[Scope], request: GetRequest) -> GetReply:
    found: list[tuple[Scope, Segment, AgentCase]] = []
    for scope in scopes:
        segments = await load_segments(transaction, scope)
        cases = await cases_within(transaction, scope)
        found += [(scope, segments[number], case) for number, case in cases.items()]
    found.sort(key=lambda triple: _moment(triple[1], request), reverse=request.sort_order == "desc")
    items = [case_item(scope.place, segment, case) for scope, segment, case in _page(found, request)]
    return GetReply(agent_cases=items, total_count=len(found), count=len(items))


async def _skills(transaction: Transaction, scopes: list[Scope], request: GetRequest) -> GetReply:
    """Skills have no time of their own: the newest case of each counts."""
    found: list[tuple[int, RawItem]] = []
    for scope in scopes:
        segments = await load_segments(transaction, scope)
        for group in skills_within(scope, await cases_within(transaction, scope)):
            newest = max(segments[case.segment_no].updated_ms for case in group)
            found.append((newest, skill_item(scope.place, group, segments)))
    found.sort(key=lambda pair: pair[0], reverse=request.sort_order == "desc")
    items = [item for _, item in _page(found, request)]
    return GetReply(agent_skills=items, total_count=len(found), count=len(items))
