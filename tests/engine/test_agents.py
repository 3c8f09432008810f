"""Cases out of tool trajectories, skills out of cases, and whose they are."""

import pytest

from memory_gateway.engine.schemas import Caller, GetRequest, MemoryKey, RawItem
from tests.engine.conftest import Talk, hidden

ALIKE = ("bot", "bot2", "Bot", "b_t", "bot_ac_20260528_00000001", "bot_skill-1")


async def joint_work(talk: Talk, *, session: str, user: str = "ann") -> None:
    """One request that every one of the agents works on."""
    messages = [talk.message("the falcon API returns 502 errors", user)]
    for agent in ALIKE:
        messages += [
            talk.call("read_logs", agent, agent),
            talk.message("timeout in the worker", "runner", "tool", tool_call_id=agent),
        ]
    await talk.add(*messages, talk.message("The fault is gone.", "bot", "assistant"), user=user, session=session)


async def items_of(talk: Talk, memory_type: str, caller: Caller) -> dict[str, list[RawItem]]:
    """What the caller sees of each agent, by search; a listing gives the same."""
    seen: dict[str, list[RawItem]] = {}
    for agent in ALIKE:
        reply = await talk.search("falcon errors", agent_id=agent, caller=caller)
        seen[agent] = reply.agent_cases if memory_type == "agent_case" else reply.agent_skills
        listing = await talk.engine.get(GetRequest(memory_type, agent_id=agent), caller)  # type: ignore[arg-type]
        assert listing.total_count == len(seen[agent])
    return seen


async def test_a_trajectory_becomes_a_case_of_the_assistant(talk: Talk) -> None:
    await talk.trajectory("the falcon API returns 502 errors", session="work")
    reply = await talk.search("falcon 502", agent_id="bot", user="ann")
    (case,) = reply.agent_cases
    assert case["id"].startswith("bot_ac_")
    assert case["task_intent"] == "the falcon API returns 502 errors"
    assert case["approach"].split("\n")[:3] == [
        "1. call read_logs",
        '   - Tried: read_logs({"service":"falcon"})',
        "   - Result: timeout in the worker",
    ]
    assert case["key_insight"] == "Raised max_connections, the fault is gone."
    assert reply.episodes == []
    assert reply.agent_skills == []


async def test_failed_steps_lower_the_quality(talk: Talk) -> None:
    await talk.trajectory("deploy the heron", session="good")
    await talk.trajectory("deploy the heron", session="bad", result="error: permission denied")
    reply = await talk.engine.get(GetRequest("agent_case", agent_id="bot", sort_order="asc"), Caller(user_id="ann"))
    good, bad = (case["quality_score"] for case in reply.agent_cases)
    assert 0 < bad < good <= 1


async def test_three_like_cases_make_a_skill_and_two_do_not(talk: Talk) -> None:
    for number in range(2):
        await talk.trajectory("the falcon API returns 502 errors", session=f"work:{number}")
    await talk.trajectory("translate the letter to Danish", session="other")
    assert (await talk.search("falcon", agent_id="bot")).agent_skills == []
    await talk.trajectory("falcon API errors again", session="work:2")
    (skill,) = (await talk.search("falcon errors", agent_id="bot")).agent_skills
    assert len(skill["source_case_ids"]) == 3
    assert "1. read_logs\n2. edit_config" in skill["content"]
    assert 0 < skill["confidence"] <= 1


async def test_a_filter_holds_for_an_agent_too(talk: Talk) -> None:
    for number in range(3):
        await talk.trajectory("falcon errors", session=f"work:{number}")
    reply = await talk.search("falcon", agent_id="bot", filters={"session_id": "work:1"})
    assert [case["session_id"] for case in reply.agent_cases] == ["work:1"]
    assert reply.agent_skills == []


async def test_an_agents_cases_are_told_to_the_caller_they_were_made_with_only(talk: Talk) -> None:
    await talk.trajectory("the falcon of ann", session="1", user="ann")
    await talk.trajectory("the falcon of anna", session="1", user="anna")
    mine = await talk.search("falcon", agent_id="bot", caller=Caller(user_id="ann"))
    assert [case["task_intent"] for case in mine.agent_cases] == ["the falcon of ann"]
    shared = await talk.search("falcon", agent_id="bot", caller=Caller(user_id="ann", shared_agents=True))
    assert {case["task_intent"] for case in shared.agent_cases} == {"the falcon of ann", "the falcon of anna"}


async def test_hiding_a_case_hides_the_episode_behind_it(talk: Talk) -> None:
    await talk.trajectory("the falcon errors", session="work")
    (case,) = (await talk.search("falcon", agent_id="bot")).agent_cases
    caller = hidden("agent_case", case["id"])
    assert (await talk.search("falcon", agent_id="bot", caller=caller)).agent_cases == []
    assert (await talk.search("falcon", caller=caller)).episodes == []


async def test_hiding_a_message_hides_the_case_that_was_made_of_it(talk: Talk) -> None:
    await talk.trajectory("the falcon errors", session="work")
    (asked, *_) = (await talk.search("x", filters={"session_id": "work"})).unprocessed_messages
    caller = hidden("unprocessed_message", asked["id"])
    assert (await talk.search("errors falcon timeout", agent_id="bot", caller=caller)).agent_cases == []


async def test_hiding_a_skill_leaves_its_cases(talk: Talk) -> None:
    for number in range(3):
        await talk.trajectory("falcon errors", session=f"work:{number}")
    (skill,) = (await talk.search("falcon", agent_id="bot")).agent_skills
    reply = await talk.search("falcon", agent_id="bot", caller=hidden("agent_skill", skill["id"]))
    assert reply.agent_skills == []
    assert len(reply.agent_cases) == 3


async def test_shared_cases_of_two_callers_have_ids_of_their_own_and_are_hidden_one_by_one(talk: Talk) -> None:
    await talk.trajectory("the falcon of ann", session="1", user="ann")
    await talk.trajectory("the falcon of anna", session="1", user="anna")
    ann = Caller(user_id="ann", shared_agents=True)
    cases = {
        case["task_intent"]: case["id"]
        for case in (await talk.search("falcon", agent_id="bot", caller=ann)).agent_cases
    }
    assert len(set(cases.values())) == 2
    for mine, other in (("the falcon of ann", "the falcon of anna"), ("the falcon of anna", "the falcon of ann")):
        hiding = Caller(user_id="ann", shared_agents=True, hidden=(MemoryKey("agent_case", cases[mine]),))
        reply = await talk.search("falcon", agent_id="bot", caller=hiding)
        assert [case["task_intent"] for case in reply.agent_cases] == [other]


async def test_sharing_agents_shares_no_unprocessed_message(talk: Talk) -> None:
    await talk.trajectory("the falcon of anna", session="1", user="anna")
    ann = Caller(user_id="ann", shared_agents=True)
    reply = await talk.search("falcon", agent_id="bot", caller=ann, filters={"session_id": "1"})
    assert [case["task_intent"] for case in reply.agent_cases] == ["the falcon of anna"]
    assert reply.unprocessed_messages == []


@pytest.mark.parametrize("memory_type", ["agent_case", "agent_skill"])
async def test_hiding_what_one_agent_learned_leaves_what_others_learned_from_the_same_words(
    talk: Talk, memory_type: str
) -> None:
    for number in range(3):
        await joint_work(talk, session=f"work:{number}")
    seen = await items_of(talk, memory_type, Caller(user_id="ann"))
    assert {len(items) for items in seen.values()} == {3 if memory_type == "agent_case" else 1}
    for gone in ALIKE:
        left = await items_of(talk, memory_type, hidden(memory_type, seen[gone][0]["id"]))
        assert {agent: len(seen[agent]) - len(left[agent]) for agent in ALIKE} == {**dict.fromkeys(ALIKE, 0), gone: 1}


async def test_hiding_an_episode_hides_the_cases_of_all_its_agents(talk: Talk) -> None:
    await joint_work(talk, session="work")
    (episode,) = (await talk.episodes()).episodes
    assert await items_of(talk, "agent_case", hidden("episode", episode["id"])) == {agent: [] for agent in ALIKE}


async def test_the_words_behind_a_hidden_case_are_shown_to_nobody(talk: Talk) -> None:
    await joint_work(talk, session="work")
    (case,) = (await talk.search("falcon", agent_id="bot")).agent_cases
    caller = hidden("agent_case", case["id"])
    assert (await talk.search("falcon", caller=caller)).episodes == []
    for agent in ALIKE:
        reply = await talk.search("falcon", agent_id=agent, caller=caller, filters={"session_id": "work"})
        assert reply.unprocessed_messages == []


@pytest.mark.parametrize("memory_type", ["agent_case", "agent_skill"])
async def test_hiding_what_a_shared_agent_learned_elsewhere_leaves_what_others_learned_there(
    talk: Talk, memory_type: str
) -> None:
    for number in range(3):
        await joint_work(talk, session=f"work:{number}", user="anna")
    seen = await items_of(talk, memory_type, Caller(user_id="ann", shared_agents=True))
    for gone in ALIKE:
        key = MemoryKey(memory_type, seen[gone][0]["id"])  # type: ignore[arg-type]
        left = await items_of(talk, memory_type, Caller(user_id="ann", shared_agents=True, hidden=(key,)))
        assert {agent: len(seen[agent]) - len(left[agent]) for agent in ALIKE} == {**dict.fromkeys(ALIKE, 0), gone: 1}


async def test_a_skill_keeps_its_id_when_it_grows_and_when_the_case_that_founded_it_is_out_of_sight(
    talk: Talk,
) -> None:
    requests = ["the falcon API returns 502 errors", "falcon errors in the API", "API errors of the falcon"]
    for number, request in enumerate([*requests, "502 errors: what the falcon returns", "the falcon returns 502"]):
        await talk.trajectory(request, session=f"work:{number}")
        skills = (await talk.search("falcon", agent_id="bot")).agent_skills
        assert [skill["id"] for skill in skills] == (["bot_skill-1"] if number >= 2 else [])
    sessions = {"session_id": {"in": ["work:2", "work:3", "work:4"]}}
    (skill,) = (await talk.search("falcon", agent_id="bot", filters=sessions)).agent_skills
    assert (skill["id"], skill["name"], len(skill["source_case_ids"])) == ("bot_skill-1", "skill-1", 3)
