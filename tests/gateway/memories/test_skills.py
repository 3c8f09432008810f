"""What agents learned, over HTTP and the real engine: edits of a case or skill last, and reach no other agent's."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memory_gateway.settings import Settings
from memory_gateway.upstream.embedded import EmbeddedUpstream
from tests.engine.conftest import open_talk
from tests.fakes.house import House, Json, User, ids

AGENTS = ("bot", "bot2", "Bot", "b_t")
FIRST = ("the falcon API returns 502 errors", "falcon errors in the API", "API errors of the falcon")
LATER = ("502 errors: what the falcon returns", "the falcon returns 502")


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_talk(tmp_path) as talk:
        house = House(talk.database, tmp_path, EmbeddedUpstream(talk.engine, Settings(data_dir=tmp_path)))
        yield house
        await house.close()


async def work(user: User, request: str, *, agents: tuple[str, ...] = ("bot",)) -> None:
    """A chat in which the user asks and each of the agents makes a call."""
    messages = [user.says(request)]
    for agent in agents:
        call = {"id": agent, "type": "function", "function": {"name": "read_logs", "arguments": "{}"}}
        messages.append(user.says("", sender_id=agent, role="assistant", tool_calls=[call]))
        messages.append(user.says("timeout", sender_id="runner", role="tool", tool_call_id=agent))
    messages.append(user.says("The fault is gone.", sender_id="bot", role="assistant"))
    response = await user.add(*messages, chat=request)
    assert response.status_code == 200, response.text


async def learned(user: User, memory_type: str, agent: str = "bot") -> list[Json]:
    results = await user.search("falcon errors", agent_id=agent, method="keyword", top_k=-1)
    return [result for result in results if result["memory_type"] == memory_type]


async def test_an_override_of_a_skill_lasts_while_the_skill_grows(ann: User) -> None:
    for request in FIRST:
        await work(ann, request)
    (skill,) = await learned(ann, "agent_skill")
    assert (await ann.override(skill["id"], "Restart the falcon.", memory_type="agent_skill")).status_code == 200
    for request in LATER:
        await work(ann, request)
    (grown,) = await learned(ann, "agent_skill")
    assert (grown["id"], grown["text"], grown["overridden"]) == (skill["id"], "Restart the falcon.", True)
    assert len(grown["raw"]["source_case_ids"]) == 5


async def test_a_deleted_skill_stays_away_while_it_grows_and_comes_back_when_restored(ann: User) -> None:
    for request in FIRST:
        await work(ann, request)
    (skill,) = await learned(ann, "agent_skill")
    await ann.delete(skill["id"], memory_type="agent_skill")
    for request in LATER:
        await work(ann, request)
    assert await learned(ann, "agent_skill") == []
    assert len(await learned(ann, "agent_case")) == 5
    await ann.edit("POST", skill["id"], "/restore", place={"memory_type": "agent_skill"})
    assert ids(await learned(ann, "agent_skill")) == [skill["id"]]


@pytest.mark.parametrize("memory_type", ["agent_case", "agent_skill"])
async def test_deleting_what_one_agent_learned_leaves_what_others_learned_in_the_same_chat(
    ann: User, memory_type: str
) -> None:
    for request in FIRST:
        await work(ann, request, agents=AGENTS)
    shown = {agent: ids(await learned(ann, memory_type, agent)) for agent in AGENTS}
    for place, gone in enumerate(AGENTS):
        deleted = shown[gone].pop()
        assert (await ann.delete(deleted, memory_type=memory_type)).status_code == 200
        for agent in AGENTS[place:]:
            assert sorted(ids(await learned(ann, memory_type, agent))) == sorted(shown[agent])
