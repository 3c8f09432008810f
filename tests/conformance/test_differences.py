"""Where the embedded engine differs from EverOS on purpose: both sides are asserted."""

from typing import Any

import pytest

from memory_gateway.engine.schemas import ContentItem, FlushReply, Message
from memory_gateway.kit.errors import UpstreamRefused
from tests.conformance.corpus import EVE, OPEN_APP, START, bot, outcome, user
from tests.conformance.filters import KEPT
from tests.conformance.world import METHODS, World, sessions

CUSTOM = {"timestamp": {"timestamp": {"gte": START}}, "AND": {"AND": [{"session_id": "chat:tools"}]}}


@pytest.mark.parametrize("filters", CUSTOM.values(), ids=CUSTOM)
async def test_an_agents_search_with_a_custom_filter(world: World, filters: dict[str, Any]) -> None:
    """Embedded: as for a user. EverOS: 500, its skills lack the columns."""
    if world.name == "everos":
        with pytest.raises(UpstreamRefused) as caught:
            await world.search("falcon 502 errors", filters, agent_id="bot")
        assert (caught.value.status, caught.value.upstream_code) == (500, "INTERNAL_ERROR")
        return
    found = await world.search("falcon 502 errors", filters, agent_id="bot")
    assert [case["session_id"] for case in found.agent_cases] == ["chat:tools"]


async def test_a_sender_or_a_session_by_vector(world: World) -> None:
    """Embedded: either. EverOS: it looks for facts first, and facts have no sender."""
    found = set(sessions(await world.search(filters=KEPT["OR"][0], method="vector")))
    assert found == {"embedded": {"chat:tea", "chat:group"}, "everos": {"chat:tea"}}[world.name]


async def test_unprocessed_messages_of_another_callers_session(world: World) -> None:
    """Embedded: none. EverOS: all of them, it has no users (the gateway drops them)."""
    reply = await world.search("kettle", {"session_id": "chat:open"}, caller=EVE, user_id="eve", app_id=OPEN_APP)
    assert len(reply.unprocessed_messages) == {"embedded": 0, "everos": 3}[world.name]


async def test_words_that_are_not_closed_yet(world: World) -> None:
    """Embedded: found as an episode the moment `add` returns. EverOS: only after extraction."""
    found = sessions(await world.search("kettle", app_id=OPEN_APP))
    assert found == {"embedded": ["chat:open"], "everos": []}[world.name]


async def test_an_open_episodes_id(world: World) -> None:
    """Embedded: fixed at the first turn, through growth and closing. EverOS: made by extraction."""
    app = "conformance-growing"
    await world.add("s", user("a note on tea", START), app=app)
    opened = (await world.get(app_id=app)).episodes
    await world.add("s", user("a note on coffee", START + 1_000), app=app)
    grown = (await world.get(app_id=app)).episodes
    await world.flush("s", app=app)
    closed = (await world.until(lambda: world.get(app_id=app), lambda reply: reply.count == 1)).episodes
    assert len(closed) == 1
    assert "coffee" in closed[0]["episode"]
    ids = [[episode["id"] for episode in episodes] for episodes in (opened, grown)]
    assert ids == {"embedded": [[closed[0]["id"]]] * 2, "everos": [[], []]}[world.name]


async def test_a_batch_repeated_after_it_was_closed(world: World) -> None:
    """Embedded: nothing is added. EverOS: a second episode."""
    app = "conformance-repeat-closed"
    for _ in range(2):
        await world.add("s", user("a note on tea", START), app=app)
        await world.flush("s", app=app)
    episodes = {"embedded": 1, "everos": 2}[world.name]
    reply = await world.until(lambda: world.get(app_id=app), lambda reply: reply.count == episodes)
    assert reply.count == episodes


async def test_two_requests_with_the_same_millisecond(world: World) -> None:
    """Embedded: both are kept. EverOS: the second is lost while the first is open."""
    app = "conformance-millisecond"
    await world.add("s", user("first", START), app=app)
    await world.add("s", user("second", START), app=app)
    kept = [message["content"] for message in await world.buffered("s", app=app)]
    assert kept == {"embedded": ["first", "second"], "everos": ["first"]}[world.name]


@pytest.mark.parametrize(
    "item",
    [
        ContentItem("doc", uri="file:///nowhere/plan.pdf", name="plan.pdf"),
        ContentItem("image", name="plan.pdf"),
    ],
    ids=["a file that is not there", "no content"],
)
async def test_an_item_that_cannot_be_read(world: World, item: ContentItem) -> None:
    """Embedded: its name stays in the text, and the add succeeds. EverOS: the whole request is refused."""
    app = "conformance-unreadable"
    session = f"s-{item.type}"
    message = Message("ann", "user", START, [ContentItem("text", text="See the plan."), item])
    if world.name == "everos":
        with pytest.raises(UpstreamRefused) as caught:
            await world.add(session, message, app=app)
        assert (caught.value.status, caught.value.upstream_code) == (415, "UNSUPPORTED_FORMAT")
        assert "nowhere" not in caught.value.message
        assert await world.buffered(session, app=app) == []
        return
    assert (await world.add(session, message, app=app)).message_count == 1
    (buffered,) = await world.buffered(session, app=app)
    assert [part.get("parse_status") for part in buffered["content"]] == [None, "failed"]
    (episode,) = (await world.search("plan", app_id=app)).episodes
    assert f"[{item.type.upper()}: plan.pdf]" in episode["episode"]


@pytest.mark.parametrize("method", METHODS)
async def test_scored_facts(world: World, method: str) -> None:
    """Embedded: nested with every method. EverOS: with hybrid only."""
    found = (await world.search("Lisbon data centre", method=method)).episodes
    best = next(episode for episode in found if episode["session_id"] == "chat:falcon")
    nested = {"embedded": True, "everos": method == "hybrid"}[world.name]
    assert bool(best["atomic_facts"]) is nested


async def test_a_skill_after_one_case(world: World) -> None:
    """Embedded: a skill takes three similar cases. EverOS: one good case is enough."""
    skills = (await world.get("agent_skill", agent_id="bot")).agent_skills
    assert len(skills) == {"embedded": 0, "everos": 1}[world.name]


async def test_a_profile(world: World) -> None:
    """Embedded: the user's stated facts, none here. EverOS: written from the conversations."""
    profiles = (await world.search(include_profile=True)).profiles
    assert len(profiles) == {"embedded": 0, "everos": 1}[world.name]


async def test_words_without_a_user(world: World) -> None:
    """Embedded: the caller owns whatever was said in their sessions. EverOS: closed, and owned by nobody."""
    app = "conformance-no-user"
    await world.add("s", bot("a note to self", START), app=app)
    assert await world.flush("s", app=app) == FlushReply("extracted")
    assert await world.buffered("s", app=app) == []
    found = sessions(await world.search(app_id=app))
    assert found == {"embedded": ["s"], "everos": []}[world.name]


async def test_tool_outcomes_alone(world: World) -> None:
    """Embedded: closed like any words. EverOS: nothing to close, they wait for more."""
    app = "conformance-tools-only"
    await world.add("s", outcome(1, "a note", START), app=app)
    status = (await world.flush("s", app=app)).status
    waiting = [message["content"] for message in await world.buffered("s", app=app)]
    assert (status, waiting) == {"embedded": ("extracted", []), "everos": ("no_extraction", ["a note"])}[world.name]


async def test_a_quote_in_a_time(world: World) -> None:
    """Refused by both; EverOS, which builds SQL from it, says so."""
    with pytest.raises(UpstreamRefused) as caught:
        await world.search(filters={"timestamp": {"gte": "2026'"}})
    assert (
        caught.value.message
        == {
            "embedded": "timestamp value for 'timestamp' must be ms or ISO string",
            "everos": "timestamp string for 'timestamp' contains a quote",
        }[world.name]
    )
