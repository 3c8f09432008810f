"""Shapes, owners, order and bounds of a search's answer."""

from datetime import datetime
from typing import Any

import pytest

from tests.conformance.corpus import APP, SESSIONS
from tests.conformance.world import METHODS, World, sessions

EPISODE = {
    "id",
    "user_id",
    "app_id",
    "project_id",
    "session_id",
    "timestamp",
    "sender_ids",
    "summary",
    "subject",
    "episode",
    "type",
    "score",
    "atomic_facts",
}
AGENT_CASE = {
    "id",
    "agent_id",
    "app_id",
    "project_id",
    "session_id",
    "task_intent",
    "approach",
    "quality_score",
    "key_insight",
    "timestamp",
    "score",
}
AWKWARD = ["memory:safe", 'say "hi', "foo AND", "(py", "pre-edit", "it's", "*", "NEAR(", "%", "🙂", "\\", "a^2~ [x]"]
STRANGERS = [{"user_id": "nobody"}, {"user_id": "an"}, {"user_id": "Ann"}, {"user_id": "%"}, {"agent_id": "nobody"}]
EVERY_METHOD = pytest.mark.parametrize("method", METHODS)


@EVERY_METHOD
async def test_an_episode_has_exactly_these_keys(world: World, method: str) -> None:
    found = (await world.search("falcon", method=method)).episodes
    assert found
    assert [set(episode) for episode in found] == [EPISODE] * len(found)
    assert all(isinstance(episode["score"], float) for episode in found)


@EVERY_METHOD
async def test_the_best_come_first(world: World, method: str) -> None:
    found = (await world.search("Where does the falcon service move to, Lisbon?", method=method)).episodes
    assert found[0]["session_id"] == "chat:falcon"
    scores = [episode["score"] for episode in found]
    assert scores == sorted(scores, reverse=True)


async def test_an_episode_says_whose_it_is_where_and_when(world: World) -> None:
    (episode,) = (await world.search("budget")).episodes
    assert (episode["user_id"], episode["app_id"], episode["project_id"]) == ("ann", APP, "default")
    assert (episode["session_id"], episode["type"]) == ("chat:group", "Conversation")
    assert episode["timestamp"] == "2026-05-30T20:26:42Z"
    assert episode["sender_ids"] == ["ann", "ben", "bot"]
    assert "meet on Monday about the budget" in episode["episode"]
    assert all(isinstance(episode[part], str) and episode[part] for part in ("id", "summary", "subject"))


async def test_each_user_in_a_session_has_a_copy(world: World) -> None:
    (anns,) = (await world.search("budget")).episodes
    (bens,) = (await world.search("budget", user_id="ben")).episodes
    assert bens["user_id"] == "ben"
    assert bens["episode"] == anns["episode"]
    assert bens["id"] != anns["id"]


@EVERY_METHOD
async def test_facts_have_exactly_these_keys_best_first(world: World, method: str) -> None:
    found = (await world.search("falcon", method=method)).episodes
    facts = [fact for episode in found for fact in episode["atomic_facts"]]
    assert [set(fact) for fact in facts] == [{"id", "content", "score"}] * len(facts)
    for episode in found:
        scores = [fact["score"] for fact in episode["atomic_facts"]]
        assert scores == sorted(scores, reverse=True)


async def test_hybrid_nests_the_matching_facts(world: World) -> None:
    found = (await world.search("Lisbon data centre", method="hybrid")).episodes
    assert "Lisbon data centre" in found[0]["atomic_facts"][0]["content"]


@EVERY_METHOD
async def test_top_k_bounds_the_episodes(world: World, method: str) -> None:
    assert len((await world.search("note", method=method, top_k=2)).episodes) == 2


async def test_top_k_minus_one_is_as_many_as_there_are(world: World) -> None:
    assert set(sessions(await world.search(top_k=-1))) == SESSIONS


@pytest.mark.parametrize("owner", STRANGERS, ids=lambda owner: "-".join(owner.values()))
@EVERY_METHOD
async def test_an_unknown_owner_has_nothing(world: World, method: str, owner: dict[str, Any]) -> None:
    reply = await world.search(method=method, include_profile=True, **owner)
    assert (reply.episodes, reply.profiles, reply.agent_cases, reply.agent_skills) == ([], [], [], [])
    assert reply.unprocessed_messages == []


@pytest.mark.parametrize("place", [{"app_id": "Conformance"}, {"project_id": "other"}], ids=["app", "project"])
async def test_memories_stay_in_their_app_and_project(world: World, place: dict[str, Any]) -> None:
    assert sessions(await world.search(**place)) == []


async def test_keyword_finds_only_what_shares_a_word(world: World) -> None:
    assert sessions(await world.search("zeppelin")) == []
    assert sessions(await world.search("heron")) == ["chat:late"]


async def test_case_is_of_no_matter(world: World) -> None:
    assert sessions(await world.search("HERON")) == ["chat:late"]


async def test_a_profile_comes_only_when_asked_for(world: World) -> None:
    assert (await world.search()).profiles == []


@pytest.mark.parametrize("method", ["keyword", "hybrid"])
async def test_an_agents_case_has_exactly_these_keys(world: World, method: str) -> None:
    reply = await world.search("falcon 502 errors", agent_id="bot", method=method)
    (case,) = reply.agent_cases
    assert set(case) == AGENT_CASE
    assert (case["agent_id"], case["session_id"]) == ("bot", "chat:tools")
    assert case["timestamp"] == "2026-06-01T20:26:49Z"
    assert "502 errors" in case["task_intent"]
    assert "read_logs" in case["approach"]
    assert 0 <= case["quality_score"] <= 1
    assert isinstance(case["score"], float)


async def test_an_agent_has_no_episodes_and_a_user_no_cases(world: World) -> None:
    assert (await world.search("falcon", agent_id="bot")).episodes == []
    users = await world.search("falcon")
    assert (users.agent_cases, users.agent_skills) == ([], [])


async def test_an_agents_cases_are_found_by_session(world: World) -> None:
    found = await world.search("falcon 502 errors", {"session_id": "chat:tools"}, agent_id="bot")
    assert [case["session_id"] for case in found.agent_cases] == ["chat:tools"]
    elsewhere = await world.search("falcon 502 errors", {"session_id": {"in": ["chat:tea"]}}, agent_id="bot")
    assert elsewhere.agent_cases == []


@pytest.mark.parametrize("method", ["keyword", "hybrid"])
@pytest.mark.parametrize("query", AWKWARD)
async def test_awkward_queries_are_words_like_any(world: World, query: str, method: str) -> None:
    reply = await world.search(query, method=method, top_k=1)
    assert all(datetime.fromisoformat(episode["timestamp"]) for episode in reply.episodes)


async def test_chinese_words_are_found(world: World) -> None:
    assert sessions(await world.search("厨房")) == ["chat:late"]
