"""``POST /memories/search`` over HTTP: what is sent, what may be seen, what comes back."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from memory_gateway.engine.schemas import SearchReply
from memory_gateway.kit.errors import UpstreamRefused, UpstreamTimeout
from memory_gateway.storage.sqlite import SqliteDatabase
from tests.fakes import items
from tests.fakes.house import House, Json, User, texts
from tests.fakes.upstream import EMBEDDED_LIKE, RecordingUpstream
from tests.gateway.memories.conftest import SCOPES, error, uploaded

# The acceptance points of seed 2


async def test_1_without_new_fields_the_upstream_gets_the_defaults(everos: RecordingUpstream, ann: User) -> None:
    assert await ann.search("tea") == []
    assert everos.sent("search") == [
        {
            "query": "tea",
            "user_id": "ann",
            "method": "hybrid",
            "top_k": 8,
            "include_profile": True,
            "enable_llm_rerank": True,
            "app_id": "default",
            "project_id": "default",
        }
    ]


async def test_2_all_options_go_through_as_given(everos: RecordingUpstream, ann: User) -> None:
    options = {
        "method": "vector",
        "top_k": 20,
        "radius": 0.4,
        "min_score": 0.2,
        "include_profile": False,
        "enable_llm_rerank": False,
        "app_id": "shop",
        "project_id": "eu",
        "filters": {"AND": [{"timestamp": {"gte": 1}}, {"OR": [{"sender_id": "ann"}, {"sender_id": {"in": ["bot"]}}]}]},
    }
    await ann.search("tea", **options)
    assert everos.sent("search") == [{"query": "tea", "user_id": "ann", **options}]


@pytest.mark.parametrize("top_k", [-1, 1, 100])
async def test_3_top_k_is_minus_one_or_1_to_100(everos: RecordingUpstream, ann: User, top_k: int) -> None:
    await ann.search("tea", top_k=top_k)
    assert [body["top_k"] for body in everos.sent("search")] == [top_k]


NOT_OBJECTS: list[Any] = [[], "x", 7]
FAULTY: list[tuple[Json, str]] = [
    *(({"top_k": top_k}, "top_k") for top_k in (0, -2, 101, True, 1.5, "8")),
    *(({"method": method}, "method") for method in ("fuzzy", "HYBRID", "llm_multiround", "", 1)),
    *(({"radius": radius}, "radius") for radius in (-0.1, 1.1, "0.5", True)),
    *(({"min_score": score}, "min_score") for score in (-0.1, 1.1)),
    *(({"include_profile": flag}, "include_profile") for flag in (1, "true")),
    ({"enable_llm_rerank": 0}, "enable_llm_rerank"),
    *(({"filters": filters}, "filters") for filters in NOT_OBJECTS),
    ({"scope": []}, "scope"),
    ({"scope": "everything"}, "scope"),
    ({"scope": ["resources", "everything"]}, "scope.1"),
    *(({"query": query}, "query") for query in ("", " \n　", "x" * 8_001, None, 7)),
    ({"conversation_id": 7}, "conversation_id"),
    ({"agent_id": ""}, "agent_id"),
    ({"app_id": "a/b"}, "app_id"),
    ({"session_id": "s"}, "session_id"),
    ({"page": 1}, "page"),
]


async def test_3_values_out_of_range_are_a_422_that_names_the_field(everos: RecordingUpstream, ann: User) -> None:
    for body, field in FAULTY:
        response = await ann.post("/memories/search", {"query": "tea", **body})
        assert error(response) == (422, "invalid_input", field), body
    assert everos.calls == []


async def test_4_custom_filters_never_replace_the_conditions_of_a_scope(everos: RecordingUpstream, ann: User) -> None:
    resource = await uploaded(ann)
    custom = {"session_id": "chat:of-another", "OR": []}
    await ann.search("tea", scope=SCOPES, conversation_id="1", filters=custom)
    assert [body["filters"] for body in everos.sent("search")] == [
        {"AND": [custom, {"session_id": "chat:1"}]},
        {"AND": [custom, {"session_id": {"in": [resource["session_id"]]}}]},
        custom,
    ]


async def test_5_with_an_agent_the_upstream_gets_only_the_agent_and_the_user_is_still_checked(
    house: House, everos: RecordingUpstream, ann: User
) -> None:
    await uploaded(ann)
    await ann.search("tea", agent_id="planner", scope=["all_user_memory"])
    (body,) = everos.sent("search")
    assert (body["agent_id"], "user_id" in body) == ("planner", False)
    assert everos.callers("search")[0].user_id == "ann"
    stranger = {"query": "tea", "agent_id": "planner", "user_id": "planner", "user_key": ann.credentials["user_key"]}
    assert (await house.client.post("/memories/search", json=stranger)).status_code == 401
    assert (await house.client.post("/memories/search", json={**stranger, "user_id": "anna"})).status_code == 401
    assert len(everos.requests("search")) == 1


async def test_6_every_result_has_its_memory_type(house: House, everos: RecordingUpstream, ann: User) -> None:
    await ann.add("hello")
    everos.reply(
        "search",
        SearchReply(
            episodes=[items.episode("e", session_id="chat:1")],
            profiles=[items.profile("ann")],
            agent_cases=[items.agent_case("c", session_id="chat:1")],
            unprocessed_messages=[items.unprocessed_message("m", session_id="chat:1")],
        ),
    )
    results = await ann.search("tea")
    assert [(result["id"], result["memory_type"]) for result in results] == [
        ("e", "episode"),
        ("c", "agent_case"),
        ("ann", "profile"),
        ("m", "unprocessed_message"),
    ]


# What a result looks like


async def test_a_result_holds_the_untouched_item_and_what_the_gateway_knows(
    house: House, everos: RecordingUpstream, ann: User
) -> None:
    raw = {**items.episode("e1", session_id=None, text="每天看早报", score=0.25), "extra": {"kept": [1, None]}}
    everos.reply("search", SearchReply(episodes=[raw]))
    assert await ann.search("早报") == [
        {
            "id": "e1",
            "memory_type": "episode",
            "session_id": None,
            "text": "每天看早报",
            "score": 0.25,
            "source_scope": "all_user_memory",
            "resource_id": None,
            "resource_uri": None,
            "raw": raw,
            "attachments": [],
            "overridden": False,
        }
    ]


async def test_a_resource_is_named_and_its_file_attached_where_the_text_names_it(
    house: House, everos: RecordingUpstream, ann: User, anna: User
) -> None:
    resource = await uploaded(ann, "runbook.txt")
    session = resource["session_id"]
    raws = [
        items.episode("named", session_id=session, text="See [DOC: RUNBOOK.txt] for the heron.", score=0.9),
        items.episode("unnamed", session_id=session, text="The heron gateway.", score=0.8),
    ]
    everos.reply("search", SearchReply(episodes=raws))
    named, unnamed = await ann.search("heron", scope="resources")
    assert (named["resource_id"], named["resource_uri"]) == (resource["id"], f"resource://{resource['id']}")
    (path,) = house.storage_root.rglob("runbook.txt")
    assert named["attachments"] == [{"type": "doc", "name": "runbook.txt", "internal_uri": path.as_uri()}]
    assert (unnamed["resource_id"], unnamed["attachments"]) == (resource["id"], [])
    everos.reply("search", SearchReply(episodes=[{**raw, "user_id": "anna"} for raw in raws]))
    assert await anna.search("heron") == []


async def test_the_file_of_an_added_message_is_attached(house: House, everos: RecordingUpstream, ann: User) -> None:
    item = {"type": "image", "base64": "iVBORw0KGgo=", "name": "board.png"}
    await ann.add(ann.says([{"type": "text", "text": "the whiteboard"}, item]))
    raw = items.episode("e", session_id="chat:1", text="Ann showed board.png.")
    hidden = items.unprocessed_message("m", content=[{"type": "image", "base64": "board.png", "name": None}])
    everos.reply("search", SearchReply(episodes=[raw], unprocessed_messages=[hidden]))
    shown, in_base64_only = await ann.search("whiteboard")
    assert [attachment["name"] for attachment in shown["attachments"]] == ["board.png"]
    assert in_base64_only["attachments"] == []


# Scopes


async def test_scopes_are_merged_and_the_more_specific_one_wins(everos: RecordingUpstream, ann: User) -> None:
    await ann.add("hello")
    await uploaded(ann)
    everos.reply(
        "search",
        SearchReply(episodes=[items.episode("a", score=0.3)]),
        SearchReply(episodes=[items.episode("a", score=0.9), items.episode("b", session_id=None, score=0.5)]),
        SearchReply(episodes=[items.episode("b", session_id=None, score=0.1), items.episode("c", score=0.4)]),
    )
    results = await ann.search("tea", scope=list(reversed(SCOPES)), conversation_id="1")
    assert [(result["id"], result["source_scope"], result["score"]) for result in results] == [
        ("b", "resources", 0.5),
        ("c", "all_user_memory", 0.4),
        ("a", "current_chat", 0.3),
    ]


async def test_a_chat_that_is_not_named_and_resources_that_are_none_are_skipped(
    everos: RecordingUpstream, ann: User
) -> None:
    assert await ann.search("tea", scope=["current_chat", "resources"]) == []
    assert everos.requests("search") == []
    assert (await ann.ask("tea", scope="current_chat", conversation_id=None)).json() == {"results": []}


async def test_resources_go_in_batches_of_the_same_app_and_project(
    database: SqliteDatabase, tmp_path: Path, everos: RecordingUpstream
) -> None:
    house = House(database, tmp_path, everos, resource_batch=2)
    ann, anna = await house.user("ann"), await house.user("anna")
    sessions = [(await uploaded(ann, f"{number}.txt", b"%d" % number))["session_id"] for number in range(3)]
    await uploaded(anna)
    assert (await ann.upload("eu.txt", b"eu", project_id="eu")).status_code == 201
    deleted = await uploaded(ann, "gone.txt", b"gone")
    assert (await house.client.delete(f"/resources/{deleted['id']}", headers=ann.headers)).status_code == 200
    await ann.search("tea", scope="resources")
    assert [body["filters"] for body in everos.sent("search")] == [
        {"session_id": {"in": sessions[:2]}},
        {"session_id": {"in": sessions[2:]}},
    ]
    await house.close()


async def test_scopes_are_asked_at_the_same_time(everos: RecordingUpstream, ann: User) -> None:
    await uploaded(ann)
    gate = everos.hold("search")
    searching = asyncio.create_task(ann.search("tea", scope=SCOPES, conversation_id="1"))
    while len(everos.requests("search")) < 3:
        await asyncio.sleep(0.01)
    gate.set()
    assert await searching == []


async def test_one_failing_scope_fails_the_search_with_the_first_in_scope_order(
    everos: RecordingUpstream, ann: User
) -> None:
    await uploaded(ann)
    everos.reply(
        "search", SearchReply(), UpstreamTimeout("too slow"), UpstreamRefused(422, "INVALID_INPUT", "unknown field")
    )
    response = await ann.ask("tea", scope=SCOPES, conversation_id="1")
    assert error(response)[:2] == (504, "upstream_timeout")
    everos.reply("search", UpstreamRefused(422, "INVALID_INPUT", "unsupported filter field: 'colour'"))
    response = await ann.ask("tea", filters={"colour": "red"})
    assert (response.status_code, response.json()["error"]["details"]) == (422, {"upstream": {"code": "INVALID_INPUT"}})
    assert "colour" in response.json()["error"]["message"]


async def test_a_failing_scope_cancels_those_after_it(everos: RecordingUpstream, ann: User) -> None:
    gate = everos.hold("search")
    everos.fail("search", UpstreamTimeout("too slow"))
    searching = asyncio.create_task(ann.ask("tea", scope=["current_chat", "all_user_memory"], conversation_id="1"))
    while len(everos.requests("search")) < 2:
        await asyncio.sleep(0.01)
    gate.set()
    assert (await searching).status_code == 504
    assert everos.in_flight == 0


# F3 and F10


FILTERS: list[Json] = [
    {"AND": [{"timestamp": {"gte": 1}}, {"timestamp": {"lt": 2}}]},
    {"timestamp": {"gte": 1, "lt": 2}},
    {"colour": "red"},
    {"timestamp": {"near": 1}},
    {"session_id": {"in": []}},
    {"OR": []},
]


async def test_filters_reach_the_upstream_to_the_letter(everos: RecordingUpstream, ann: User) -> None:
    for method in ("keyword", "vector", "hybrid", "agentic"):
        for filters in FILTERS:
            everos.reply("search", SearchReply())
            await ann.search("tea", filters=filters, method=method)
            assert everos.sent("search")[-1]["filters"] == filters
            everos.reply("search", SearchReply())
            await ann.search("tea", filters=filters, method=method, scope="current_chat", conversation_id="1")
            assert everos.sent("search")[-1]["filters"] == {"AND": [filters, {"session_id": "chat:1"}]}


@pytest.mark.parametrize("filters", [{}, None])
async def test_an_empty_filter_costs_the_current_chat_no_unprocessed_message(
    everos: RecordingUpstream, ann: User, filters: Json | None
) -> None:
    await ann.add("the falcon moves to Lisbon")
    (found,) = await ann.search("falcon", filters=filters, scope="current_chat", conversation_id="1")
    assert (found["memory_type"], found["text"]) == ("unprocessed_message", "the falcon moves to Lisbon")


async def test_a_query_is_only_text(everos: RecordingUpstream, ann: User) -> None:
    await ann.add("hello")
    await ann.flush()
    (shown,) = await ann.search("hello")
    for query in (
        "memory:safe",
        'say "hi',
        "foo AND",
        "(py",
        "pre-edit",
        "it's",
        "*",
        "NEAR(",
        "%",
        "🎉",
        "語" * 1_700,
    ):
        await ann.override(shown["id"], f"my own {query} text")
        assert texts(await ann.search(query)) == [f"my own {query} text"]
        assert everos.sent("search")[-1]["query"] == query


# Speed is in the shape: what one search may cost


@pytest.mark.sqlite
async def test_a_search_writes_nothing_new_and_reads_only_by_key(
    database: SqliteDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded = RecordingUpstream(EMBEDDED_LIKE)
    house = House(database, tmp_path, embedded)
    ann = await house.user("ann")
    await ann.add("tea and coffee")
    (shown,) = await ann.search("tea")
    await ann.override(shown["id"], "tea only")
    await asyncio.sleep(0.2)
    written = database.transactions

    async def refuse(_: object) -> None:
        raise AssertionError("a search reads on no thread")

    monkeypatch.setattr(database, "read", refuse)
    for _ in range(20):
        assert texts(await ann.search("tea")) == ["tea only"]
    await house.close()
    assert database.transactions == written
