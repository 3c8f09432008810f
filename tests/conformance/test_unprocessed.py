"""What was added and is not yet closed comes back as it was said, for a plain top-level session id only."""

from typing import Any

import pytest

from tests.conformance.corpus import ANN, DAY, OPEN_APP, START, user
from tests.conformance.world import METHODS, World

KEYS = {
    "id",
    "app_id",
    "project_id",
    "session_id",
    "sender_id",
    "sender_name",
    "role",
    "content",
    "timestamp",
    "tool_calls",
    "tool_call_id",
}
PLAIN = {"session_id": "chat:open"}


async def unprocessed(world: World, filters: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    reply = await world.search("kettle", filters, **{"app_id": OPEN_APP, **options})
    return reply.unprocessed_messages


async def test_they_come_oldest_first_with_exactly_these_keys(world: World) -> None:
    found = await unprocessed(world, PLAIN)
    assert [set(message) for message in found] == [KEYS] * 3
    assert [message["timestamp"] for message in found] == [
        "2026-05-28T20:26:40Z",
        "2026-05-28T20:26:41Z",
        "2026-05-28T20:26:42Z",
    ]
    assert len({message["id"] for message in found}) == 3


async def test_they_come_as_they_were_said(world: World) -> None:
    asked, called, answered = await unprocessed(world, PLAIN)
    place = {"app_id": OPEN_APP, "project_id": "default", "session_id": "chat:open"}
    assert place.items() <= asked.items()
    assert (asked["sender_id"], asked["sender_name"], asked["role"]) == ("ann", "Ann", "user")
    assert asked["content"] == "Note: the kettle is broken."
    assert (asked["tool_calls"], asked["tool_call_id"]) == (None, None)
    assert (called["sender_id"], called["sender_name"], called["role"]) == ("bot", None, "assistant")
    assert called["tool_calls"] == [
        {"id": "call_7", "type": "function", "function": {"name": "find_shop", "arguments": '{"near":"office"}'}}
    ]
    assert (answered["role"], answered["tool_call_id"]) == ("tool", "call_7")
    assert answered["content"] == "Kettle Clinic, 2 km"


@pytest.mark.parametrize(
    "options",
    [{"method": method} for method in METHODS] + [{"top_k": 1}, {"include_profile": True}],
    ids=lambda options: "-".join(map(str, options.values())),
)
async def test_method_and_top_k_are_of_no_matter(world: World, options: dict[str, Any]) -> None:
    assert len(await unprocessed(world, PLAIN, **options)) == 3


async def test_the_query_is_of_no_matter(world: World) -> None:
    reply = await world.search("zeppelin", PLAIN, app_id=OPEN_APP)
    assert len(reply.unprocessed_messages) == 3


@pytest.mark.parametrize(
    "filters",
    [
        {"session_id": "chat:open", "timestamp": {"gte": START + DAY}},
        {"session_id": "chat:open", "sender_id": "nobody"},
        {"AND": [{"timestamp": {"gte": START + DAY}}], "session_id": "chat:open"},
        {"OR": [{"session_id": "chat:other"}], "session_id": "chat:open"},
    ],
    ids=["timestamp", "sender", "AND", "OR"],
)
async def test_siblings_do_not_disturb_them(world: World, filters: dict[str, Any]) -> None:
    assert len(await unprocessed(world, filters)) == 3


@pytest.mark.parametrize(
    "filters",
    [
        {},
        {"session_id": {"eq": "chat:open"}},
        {"session_id": {"in": ["chat:open"]}},
        {"AND": [{"session_id": "chat:open"}]},
        {"OR": [{"session_id": "chat:open"}]},
        {"session_id": "chat:ope"},
        {"session_id": "chat:%"},
        {"session_id": None},
    ],
    ids=["none", "eq", "in", "AND", "OR", "a prefix", "a wild card", "null"],
)
async def test_no_other_form_brings_them(world: World, filters: dict[str, Any]) -> None:
    assert await unprocessed(world, filters) == []


@pytest.mark.parametrize("place", [{"app_id": "conformance-ope"}, {"project_id": "other"}], ids=["app", "project"])
async def test_they_stay_in_their_app_and_project(world: World, place: dict[str, Any]) -> None:
    assert await unprocessed(world, PLAIN, **place) == []


async def test_a_closed_session_has_none(world: World) -> None:
    assert (await world.search(filters={"session_id": "chat:tea"})).unprocessed_messages == []


async def test_they_are_ordered_by_time_not_by_arrival(world: World) -> None:
    app = "conformance-order"
    await world.add("s", user("third", START + 2_000), app=app)
    await world.add("s", user("second", START + 1_000), user("first", START), app=app)
    assert [message["content"] for message in await world.buffered("s", app=app)] == ["first", "second", "third"]


async def test_a_small_timestamp_is_read_as_seconds(world: World) -> None:
    app = "conformance-seconds"
    await world.add("s", user("hello", START // 1000), app=app)
    assert [message["timestamp"] for message in await world.buffered("s", app=app)] == ["2026-05-28T20:26:40Z"]


async def test_sessions_and_projects_do_not_mix(world: World) -> None:
    app = "conformance-places"
    await world.add("a:b/c", user("one", START), app=app)
    await world.add("a:b", user("two", START), app=app)
    await world.add("a:b/c", user("three", START), app=app, project_id="p2")
    assert [message["content"] for message in await world.buffered("a:b/c", app=app)] == ["one"]
    assert ANN.user_id == "ann"


TEXTS = ["每天看早报。", "naïve café Straße", "  spaces\n\tand lines ", "'; DROP TABLE x; --", "🙂", ""]


@pytest.mark.parametrize("text", TEXTS)
async def test_text_comes_back_as_written(world: World, text: str) -> None:
    app = "conformance-verbatim"
    session = "s-" + (text.encode().hex()[:20] or "empty")
    await world.add(session, user(text, START), app=app)
    assert [message["content"] for message in await world.buffered(session, app=app)] == [text]
