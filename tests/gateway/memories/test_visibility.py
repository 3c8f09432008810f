"""Who is shown what, over HTTP, on upstreams that do and do not keep users apart."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memory_gateway.engine.schemas import SearchReply
from memory_gateway.storage.sqlite import SqliteDatabase
from tests.fakes import items
from tests.fakes.house import House, User, ids
from tests.fakes.upstream import RecordingUpstream
from tests.gateway.memories.conftest import SCOPES, uploaded


async def test_unprocessed_messages_are_shown_to_their_owner_only(
    everos: RecordingUpstream, ann: User, anna: User, house: House
) -> None:
    await ann.add("my pin is 4471")
    everos.reply("search", *[SearchReply(unprocessed_messages=[items.unprocessed_message("m")])] * 3)
    assert ids(await ann.search("pin")) == ["m"]
    assert await anna.search("pin", scope="current_chat", conversation_id="1") == []
    assert await (await house.user("a_n")).search("pin") == []
    nobodys = items.unprocessed_message("m", session_id="chat:legacy")
    everos.reply("search", SearchReply(unprocessed_messages=[nobodys]))
    assert await ann.search("pin") == []


async def test_unprocessed_messages_of_resources_are_shown_to_the_user_they_name(
    everos: RecordingUpstream, ann: User, anna: User
) -> None:
    message = items.unprocessed_message("m", session_id="resource:ann:r1")
    everos.reply("search", *[SearchReply(unprocessed_messages=[message])] * 2)
    assert ids(await ann.search("x")) == ["m"]
    assert await anna.search("x") == []


async def test_nothing_of_a_session_of_another_user_is_shown(everos: RecordingUpstream, ann: User, anna: User) -> None:
    """A guest in ann's session who registers later, as EverOS would answer."""
    await ann.add("a secret")
    reply = SearchReply(
        episodes=[
            items.episode("of ann's chat", user_id="anna", session_id="chat:1"),
            items.episode("of a resource", user_id="anna", session_id="resource:ann:r1"),
            items.episode("of another owner", user_id="ann", session_id=None),
            items.episode("own", user_id="anna", session_id="chat:legacy"),
        ],
        profiles=[items.profile("ann"), items.profile("anna")],
    )
    everos.reply("search", reply)
    assert ids(await anna.search("secret", top_k=-1)) == ["own", "anna"]


async def test_agent_cases_are_shown_for_own_sessions_and_skills_not_at_all(
    everos: RecordingUpstream, ann: User, anna: User
) -> None:
    await ann.add("please fix the 502")
    await anna.add("mine", chat="2")
    reply = SearchReply(
        agent_cases=[
            items.agent_case("ann's", session_id="chat:1", score=0.9),
            items.agent_case("anna's", session_id="chat:2", score=0.8),
            items.agent_case("nobody's", session_id="chat:3", score=0.7),
            items.agent_case("sessionless", session_id=None, score=0.6),
        ],
        agent_skills=[items.agent_skill("skill")],
    )
    everos.reply("search", *[reply] * 2)
    assert ids(await ann.search("502", agent_id="planner", top_k=-1)) == ["ann's"]
    assert ids(await anna.search("502", agent_id="planner", top_k=-1)) == ["anna's"]


class TestSharedAgents:
    @pytest.fixture
    async def house(self, database: SqliteDatabase, tmp_path: Path, everos: RecordingUpstream) -> AsyncIterator[House]:
        house = House(database, tmp_path, everos, shared_agents=True)
        yield house
        await house.close()

    async def test_cases_and_skills_are_everybodys(self, everos: RecordingUpstream, ann: User, anna: User) -> None:
        await ann.add("please fix the 502")
        reply = SearchReply(
            agent_cases=[items.agent_case("ann's", session_id="chat:1", score=0.9)],
            agent_skills=[items.agent_skill("skill", score=0.5)],
            unprocessed_messages=[items.unprocessed_message("m")],
        )
        everos.reply("search", reply)
        assert ids(await anna.search("502", agent_id="planner")) == ["ann's", "skill"]
        assert everos.callers("search")[0].shared_agents


async def test_skills_of_an_upstream_that_separates_agents_are_shown(
    embedded_house: House, embedded: RecordingUpstream
) -> None:
    ann = await embedded_house.user("ann")
    embedded.reply("search", SearchReply(agent_skills=[items.agent_skill("skill")]))
    assert ids(await ann.search("502", agent_id="planner")) == ["skill"]


# Deleted resources


async def test_a_deleted_resources_memories_are_in_no_scope_until_it_is_restored(
    house: House, everos: RecordingUpstream, ann: User
) -> None:
    resource = await uploaded(ann)
    path = f"/resources/{resource['id']}"
    assert len(await ann.search("notes")) == 1
    await house.client.delete(path, headers=ann.headers)
    for scope in SCOPES:
        for method in ("keyword", "vector", "hybrid", "agentic"):
            assert await ann.search("notes", scope=scope, conversation_id="1", method=method) == []
    await house.client.post(f"{path}/restore", headers=ann.headers)
    assert len(await ann.search("notes", scope="resources")) == 1


async def test_the_embedded_upstream_is_told_what_to_leave_out(
    embedded_house: House, embedded: RecordingUpstream
) -> None:
    ann = await embedded_house.user("ann")
    resource = await uploaded(ann)
    await embedded_house.client.delete(f"/resources/{resource['id']}", headers=ann.headers)
    await ann.search("notes")
    assert embedded.callers("search")[-1].hidden_sessions == {resource["session_id"]}
