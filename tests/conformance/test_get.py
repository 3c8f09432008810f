"""Listing: shape, order, pages."""

from typing import Any

import pytest

from tests.conformance.corpus import NEWEST_FIRST
from tests.conformance.test_search import AGENT_CASE, EPISODE
from tests.conformance.world import World, sessions


async def test_a_listed_episode_has_no_score_and_no_facts(world: World) -> None:
    reply = await world.get()
    assert [set(episode) for episode in reply.episodes] == [EPISODE - {"score", "atomic_facts"}] * 5
    assert (reply.profiles, reply.agent_cases, reply.agent_skills) == ([], [], [])


async def test_the_newest_come_first(world: World) -> None:
    reply = await world.get()
    assert sessions(reply) == NEWEST_FIRST
    assert (reply.total_count, reply.count) == (5, 5)


async def test_the_oldest_come_first_when_asked(world: World) -> None:
    assert sessions(await world.get(sort_order="asc")) == NEWEST_FIRST[::-1]


@pytest.mark.parametrize("page", [1, 2, 3, 4])
async def test_pages_follow_each_other(world: World, page: int) -> None:
    shown = NEWEST_FIRST[2 * page - 2 : 2 * page]
    reply = await world.get(page=page, page_size=2)
    assert sessions(reply) == shown
    assert (reply.total_count, reply.count) == (5, len(shown))


async def test_the_same_ids_as_in_search(world: World) -> None:
    listed = {episode["id"] for episode in (await world.get()).episodes}
    assert {episode["id"] for episode in (await world.search()).episodes} == listed


async def test_an_agents_cases_are_listed(world: World) -> None:
    reply = await world.get("agent_case", agent_id="bot")
    (case,) = reply.agent_cases
    assert set(case) == AGENT_CASE - {"score"}
    assert (reply.total_count, reply.count, reply.episodes) == (1, 1, [])


@pytest.mark.parametrize(
    "asked",
    [
        {"user_id": "nobody"},
        {"user_id": "Ann"},
        {"app_id": "conformanc"},
        {"project_id": "other"},
        {"memory_type": "profile", "user_id": "nobody"},
        {"memory_type": "agent_case", "agent_id": "nobody"},
        {"memory_type": "agent_skill", "agent_id": "nobody"},
    ],
    ids=lambda asked: "-".join(asked.values()),
)
async def test_where_there_is_nothing_all_is_empty(world: World, asked: dict[str, Any]) -> None:
    reply = await world.get(**asked)
    assert (reply.episodes, reply.profiles, reply.agent_cases, reply.agent_skills) == ([], [], [], [])
    assert (reply.total_count, reply.count) == (0, 0)
