"""Faults of a request are refused with 422 in the same words, and nothing is written."""

from typing import Any

import pytest
from msgspec import UNSET

from memory_gateway.engine.schemas import AddRequest, FlushRequest, GetRequest, Message, SearchRequest
from memory_gateway.kit.errors import UpstreamRefused
from tests.conformance.corpus import ANN, START, user
from tests.conformance.world import World

SHORT = "String should have at least 1 character: {}".format
LONG = "String should have at most 128 characters: {}".format
PATTERN = "String should match pattern '^[a-zA-Z0-9_.@+-]+$': {}".format
DOTS = "Value error, '.' and '..' are reserved (path traversal): {}".format
OWNER = "Value error, exactly one of user_id / agent_id must be provided"
TOP_K = "Value error, top_k must be -1 or in 1..100"
AT_LEAST = "Input should be greater than or equal to {}: {}".format
AT_MOST = "Input should be less than or equal to {}: {}".format
MISFIT = "Value error, memory_type {!r} is not valid when {} is set".format

APP = "conformance-refused"
FINE = (user("a note", START),)


def said_by(sender: str) -> AddRequest:
    return AddRequest("s", (user("a note", START, sender=sender),), APP)


def search(**asked: Any) -> SearchRequest:
    return SearchRequest(**{"query": "tea", "user_id": "ann", "method": "keyword", "app_id": APP, **asked})


def get(**asked: Any) -> GetRequest:
    return GetRequest(**{"memory_type": "episode", "user_id": "ann", "app_id": APP, **asked})


FAULTS: dict[str, tuple[AddRequest | FlushRequest | SearchRequest | GetRequest, str]] = {
    "add, empty session": (AddRequest("", FINE, APP), SHORT("session_id")),
    "add, long session": (AddRequest("s" * 129, FINE, APP), LONG("session_id")),
    "add, app with a space": (AddRequest("s", FINE, "a b"), PATTERN("app_id")),
    "add, empty app": (AddRequest("s", FINE, ""), SHORT("app_id")),
    "add, long app": (AddRequest("s", FINE, "a" * 129), LONG("app_id")),
    "add, app is two dots": (AddRequest("s", FINE, ".."), DOTS("app_id")),
    "add, project with a slash": (AddRequest("s", FINE, APP, "a/b"), PATTERN("project_id")),
    "add, no messages": (
        AddRequest("s", (), APP),
        "List should have at least 1 item after validation, not 0: messages",
    ),
    "add, 501 messages": (
        AddRequest("s", tuple(user("x", START + number) for number in range(501)), APP),
        "List should have at most 500 items after validation, not 501: messages",
    ),
    "add, sender with a colon": (said_by("user:1"), PATTERN("messages.0.sender_id")),
    "add, sender with a space": (said_by("a b"), PATTERN("messages.0.sender_id")),
    "add, sender of Han": (said_by("小明"), PATTERN("messages.0.sender_id")),
    "add, sender with a line end": (said_by("ann\n"), PATTERN("messages.0.sender_id")),
    "add, empty sender": (said_by(""), SHORT("messages.0.sender_id")),
    "add, long sender": (said_by("a" * 129), LONG("messages.0.sender_id")),
    "add, sender is a dot": (said_by("."), DOTS("messages.0.sender_id")),
    "add, the second message": (
        AddRequest("s", (*FINE, user("x", START, sender="a b")), APP),
        PATTERN("messages.1.sender_id"),
    ),
    "add, time zero": (AddRequest("s", (user("x", 0),), APP), "Input should be greater than 0: messages.0.timestamp"),
    "add, time before zero": (
        AddRequest("s", (user("x", -5),), APP),
        "Input should be greater than 0: messages.0.timestamp",
    ),
    "add, tool without a call": (
        AddRequest("s", (Message("tool", "tool", START, "x"),), APP),
        "Value error, tool_call_id is required when role is 'tool': messages.0",
    ),
    "flush, empty session": (FlushRequest("", APP), SHORT("session_id")),
    "flush, long session": (FlushRequest("s" * 129, APP), LONG("session_id")),
    "flush, app with a slash": (FlushRequest("s", "a/b"), PATTERN("app_id")),
    "search, both owners": (search(agent_id="bot"), OWNER),
    "search, no owner": (search(user_id=UNSET), OWNER),
    "search, empty user": (search(user_id=""), SHORT("user_id")),
    "search, empty agent": (search(user_id=UNSET, agent_id=""), SHORT("agent_id")),
    "search, empty query": (search(query=""), "Search query cannot be empty."),
    "search, top_k 0": (search(top_k=0), TOP_K),
    "search, top_k -2": (search(top_k=-2), TOP_K),
    "search, top_k 101": (search(top_k=101), TOP_K),
    "search, radius 2": (search(radius=2), AT_MOST(1, "radius")),
    "search, radius below 0": (search(radius=-0.1), AT_LEAST(0, "radius")),
    "search, min_score 1.5": (search(min_score=1.5), AT_MOST(1, "min_score")),
    "get, both owners": (get(agent_id="bot"), OWNER),
    "get, no owner": (get(user_id=UNSET), OWNER),
    "get, a case of a user": (get(memory_type="agent_case"), MISFIT("agent_case", "user_id")),
    "get, an episode of an agent": (get(user_id=UNSET, agent_id="bot"), MISFIT("episode", "agent_id")),
    "get, page 0": (get(page=0), AT_LEAST(1, "page")),
    "get, page_size 0": (get(page_size=0), AT_LEAST(1, "page_size")),
    "get, page_size 101": (get(page_size=101), AT_MOST(100, "page_size")),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_a_fault_is_refused_in_these_words(world: World, name: str) -> None:
    request, words = FAULTS[name]
    with pytest.raises(UpstreamRefused) as caught:
        await _ask(world, request)
    assert (caught.value.status, caught.value.upstream_code) == (422, "INVALID_INPUT")
    assert caught.value.message == words


async def test_a_refused_batch_leaves_nothing(world: World) -> None:
    app = "conformance-refused-batch"
    batch = (user("a fine note", START), user("x", START, sender="a b"))
    with pytest.raises(UpstreamRefused):
        await world.add("s", *batch, app=app)
    assert await world.buffered("s", app=app) == []


async def _ask(world: World, request: AddRequest | FlushRequest | SearchRequest | GetRequest) -> object:
    if isinstance(request, AddRequest):
        return await world.upstream.add(request, ANN)
    if isinstance(request, FlushRequest):
        return await world.upstream.flush(request, ANN)
    if isinstance(request, SearchRequest):
        return await world.upstream.search(request, ANN)
    return await world.upstream.get(request, ANN)
