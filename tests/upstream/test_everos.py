"""The EverOS adapter where no capture reaches: traps, faults of the way there, and what EverOS cannot do."""

from typing import Any

import httpx
import pytest
from msgspec import Raw

from memory_gateway.engine.schemas import (
    AddRequest,
    Caller,
    FlushRequest,
    MemoryKey,
    Message,
    SearchRequest,
)
from memory_gateway.kit.errors import UpstreamRefused
from memory_gateway.upstream.everos import EverosUpstream
from memory_gateway.upstream.port import Upstream
from tests.fakes import items
from tests.fakes.everos import BASE_URL, EMPTY, EverosTurns, answering, body_of, capture, replaying

ANN = Caller(user_id="ann")
ADD = AddRequest("chat:1", (Message("ann", "user", 1_780_000_000_000, "hello"),))
FLUSH = FlushRequest("chat:1")
SEARCH = SearchRequest("tea", user_id="ann")
AGENT_SEARCH = SearchRequest("502", agent_id="bot", method="keyword", top_k=2, filters={"session_id": "chat:1"})


def agent_answer(*sessions: str | None) -> dict[str, Any]:
    cases = [items.agent_case(f"bot_ac_{number}", session_id=session) for number, session in enumerate(sessions)]
    return {**EMPTY, "agent_cases": cases, "agent_skills": [items.agent_skill("bot_skill")]}


# An agent's search by session.


async def test_an_agents_search_by_session_alone_is_asked_without_it_and_cut_here() -> None:
    server = EverosTurns(agent_answer("chat:1", "chat:2", "chat:1", None, "chat:1"))
    reply = await server.upstream().search(AGENT_SEARCH, ANN)
    sent = body_of(server.requests[0])
    assert "filters" not in sent
    assert (sent["agent_id"], sent["method"], sent["top_k"]) == ("bot", "keyword", 100)
    assert [case["id"] for case in reply.agent_cases] == ["bot_ac_0", "bot_ac_2"]
    assert reply.agent_skills == []


async def test_a_batch_of_sessions_is_a_session_condition_too() -> None:
    server = EverosTurns(agent_answer("chat:1", "chat:2", "chat:3"))
    request = SearchRequest("502", agent_id="bot", filters={"session_id": {"in": ["chat:1", "chat:3"]}})
    reply = await server.upstream().search(request, ANN)
    assert "filters" not in body_of(server.requests[0])
    assert [case["session_id"] for case in reply.agent_cases] == ["chat:1", "chat:3"]


@pytest.mark.parametrize(
    "filters",
    [
        {"AND": [{"timestamp": {"gte": 1}}, {"session_id": "chat:1"}]},
        {"session_id": "chat:1", "timestamp": {"gte": 1}},
        {"session_id": {"ne": "chat:1"}},
        {"session_id": {"in": []}},
        {"session_id": {"in": ["chat:1", 5]}},
        {"session_id": {"in": ["chat:1"], "ne": "chat:2"}},
        {"session_id": None},
        {"session_id": 5},
        {},
    ],
)
async def test_any_other_condition_of_an_agents_search_passes_through(filters: dict[str, Any]) -> None:
    server = EverosTurns(agent_answer("chat:9"))
    request = SearchRequest("502", agent_id="bot", top_k=3, filters=filters)
    reply = await server.upstream().search(request, ANN)
    assert body_of(server.requests[0])["filters"] == filters
    assert body_of(server.requests[0])["top_k"] == 3
    assert [skill["id"] for skill in reply.agent_skills] == ["bot_skill"]


async def test_a_users_search_by_session_keeps_its_condition() -> None:
    server = EverosTurns(EMPTY)
    await server.upstream().search(SearchRequest("tea", user_id="ann", filters={"session_id": "chat:1"}), ANN)
    assert body_of(server.requests[0])["filters"] == {"session_id": "chat:1"}


async def test_an_agents_search_with_a_custom_filter_fails_as_everos_does() -> None:
    known = capture("error-agent-with-filters-500")
    upstream, _ = replaying(known)
    with pytest.raises(AssertionError, match="not captured"):
        await upstream.search(AGENT_SEARCH, ANN)
    with pytest.raises(UpstreamRefused) as caught:
        await answering(known.status, known.response).search(
            SearchRequest("502", agent_id="bot", filters={"sender_id": "ann"}), ANN
        )
    assert caught.value.status == 500


# A query that EverOS would take a minute for.


@pytest.mark.parametrize("method", ["keyword", "hybrid", "agentic"])
@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("tea " * 500, "tea " * 500),
        ("tea, " * 500 + "coffee", "tea, " * 500),
        ("茶" * 501, "茶" * 500),
        ("茶cup" * 251, "茶cup" * 250),
        ("찻" * 600, "찻" * 500),
        ("word" * 2_000, "word" * 2_000),
        ("?" * 8_000, "?" * 8_000),
        ("日" * 499 + "lunch after", "日" * 499 + "lunch "),
    ],
    ids=["500", "501", "Han", "mixed", "Hangul", "one word", "no word", "the last whole"],
)
async def test_of_a_long_query_the_first_500_words_are_asked(method: Any, query: str, asked: str) -> None:
    server = EverosTurns(EMPTY)
    await server.upstream().search(SearchRequest(query, user_id="ann", method=method), ANN)
    assert body_of(server.requests[0])["query"] == asked


async def test_by_meaning_the_whole_query_is_asked() -> None:
    server = EverosTurns(EMPTY)
    await server.upstream().search(SearchRequest("tea " * 2_000, user_id="ann", method="vector"), ANN)
    assert body_of(server.requests[0])["query"] == "tea " * 2_000


# The body.


async def test_what_is_unset_is_not_sent() -> None:
    server = EverosTurns(EMPTY)
    await server.upstream().search(SEARCH, ANN)
    assert server.requests[0].content == (
        b'{"query":"tea","user_id":"ann","method":"hybrid","top_k":-1,"include_profile":false,'
        b'"enable_llm_rerank":false,"app_id":"default","project_id":"default"}'
    )


async def test_what_the_client_wrote_goes_out_in_its_own_order_and_spelling() -> None:
    written = b'[{"content":"caf\\u00e9 \\/ 1.0","role":"user" ,"sender_id":"ann","timestamp":1780000000000.0}]'
    server = EverosTurns({"message_count": 1, "status": "accumulated"})
    await server.upstream().add(AddRequest("chat:1", ADD.messages, wire_messages=Raw(written)), ANN)
    assert server.requests[0].content == (
        b'{"session_id":"chat:1","app_id":"default","project_id":"default","messages":' + written + b"}"
    )


@pytest.mark.parametrize("prefix", ["v1", "v2"])
async def test_the_prefix_is_a_setting(prefix: Any) -> None:
    server = EverosTurns({"status": "no_extraction"})
    await server.upstream(prefix=prefix).flush(FLUSH, ANN)
    assert str(server.requests[0].url) == f"{BASE_URL}/api/{prefix}/memory/flush"


def test_traits_are_those_of_a_server_without_users() -> None:
    upstream: Upstream = EverosUpstream(BASE_URL)
    traits = upstream.traits
    assert upstream.name == "everos"
    assert traits.opens_client_uris is True
    assert not any([traits.leaves_out_hidden, traits.stable_ids, traits.separates_agents])
    assert not any([traits.splits_messages, traits.can_erase])
    assert traits.shares_files is False
    assert EverosUpstream(BASE_URL, shares_files=True).traits.shares_files is True


# Health.


async def test_health_is_read_from_the_server() -> None:
    upstream, server = replaying(capture("health-full"))
    health = await upstream.health()
    assert server.requests[0].url.path == "/health"
    assert (health.healthy, health.backlog) == (True, 0)
    assert health.capabilities == {
        "keyword": True,
        "vector": True,
        "hybrid": True,
        "agentic": True,
        "llm": True,
        "documents": True,
    }
    assert health.details == {"version": "1.5.1", "queued": 0}


async def test_health_counts_the_backlog_and_says_what_is_missing() -> None:
    body = capture("health-full").response
    body["capabilities"] |= {"embed": False, "parser": False}
    body["cascade"] |= {"pending": 7, "healthy": False, "reasons": ["/data/everos/x"]}
    health = await answering(200, body).health()
    assert (health.healthy, health.backlog) == (False, 7)
    assert health.capabilities["keyword"] is True
    assert [name for name, has in health.capabilities.items() if not has] == [
        "vector",
        "hybrid",
        "agentic",
        "documents",
    ]
    assert "/data" not in str(health.details)


@pytest.mark.parametrize("body", [b"", b"ok", {"detail": "Not Found"}, {"status": "ok"}, b"[" * 100_000])
async def test_a_health_answer_of_another_shape_is_unhealthy(body: object) -> None:
    assert (await answering(200, body).health()).healthy is False


async def test_a_slow_health_is_unhealthy() -> None:
    health = await EverosTurns(httpx.ReadTimeout("x")).upstream().health()
    assert (health.healthy, health.details) == (False, {"reason": "too slow"})


# What EverOS cannot do, and export.


async def test_what_everos_cannot_do_is_said_without_asking_it() -> None:
    server = EverosTurns(EMPTY)
    upstream = server.upstream()
    await upstream.seal("default", "default", MemoryKey("episode", "e1"), ANN)
    assert await upstream.within(SEARCH, ["e1"], ANN) is None
    erasure = await upstream.erase("ann")
    assert erasure.erased is False
    assert "no delete" in str(erasure.remaining)
    assert "'ann'" in str(erasure.remaining)
    assert server.requests == []


async def test_export_pages_through_episodes_and_then_gives_the_profile() -> None:
    def page(count: int, start: int) -> dict[str, Any]:
        episodes = [items.episode(f"e{number}") for number in range(start, start + count)]
        return {**EMPTY, "episodes": episodes, "total_count": 130, "count": count}

    profile = {**EMPTY, "profiles": [items.profile("ann")], "total_count": 1, "count": 1}
    server = EverosTurns(page(100, 0), page(30, 100), profile)
    held = [item async for item in server.upstream().export("ann", [("default", "default")])]
    assert [item["id"] for item in held] == [*(f"e{number}" for number in range(130)), "ann"]
    assert [item["kind"] for item in held] == ["episode"] * 130 + ["profile"]
    bodies = [body_of(request) for request in server.requests]
    assert [(body["memory_type"], body["page"], body["sort_order"]) for body in bodies] == [
        ("episode", 1, "asc"),
        ("episode", 2, "asc"),
        ("profile", 1, "asc"),
    ]
    assert {(body["user_id"], body["app_id"], body["project_id"]) for body in bodies} == {("ann", "default", "default")}


async def test_export_looks_where_it_is_told_to() -> None:
    server = EverosTurns({**EMPTY, "total_count": 0, "count": 0})
    assert [item async for item in server.upstream().export("ann", [("shop", "p1"), ("shop", "p2")])] == []
    asked = [(body_of(request)["app_id"], body_of(request)["project_id"]) for request in server.requests]
    assert asked == [("shop", "p1"), ("shop", "p1"), ("shop", "p2"), ("shop", "p2")]
