"""A profile is what the caller stated, and nobody else sees it."""

from pathlib import Path

from memory_gateway.engine.profiles import StatedFact
from memory_gateway.engine.schemas import Caller, GetRequest
from tests.engine.conftest import Talk, hidden, open_talk

FACTS = {
    "ann": [
        StatedFact("I live in Lisbon.", "personal_info", "manual", 1_780_000_000_000),
        StatedFact("我喜欢绿茶。", "user_preference", "conversation", 1_780_000_500_000),
    ]
}


async def stated_facts(user_id: str) -> list[StatedFact]:
    return FACTS.get(user_id, [])


async def test_stated_facts_become_a_profile_in_the_words_they_were_stated_in(tmp_path: Path) -> None:
    async with open_talk(tmp_path, stated_facts=stated_facts) as talk:
        (profile,) = (await talk.search("tea", include_profile=True)).profiles
        assert profile["id"] == "ann"
        assert profile["score"] is None
        assert [info["description"] for info in profile["profile_data"]["explicit_info"]] == [
            "I live in Lisbon.",
            "我喜欢绿茶。",
        ]
        assert profile["profile_data"]["profile_timestamp_ms"] == 1_780_000_500_000
        listed = await talk.engine.get(GetRequest("profile", user_id="ann"), Caller(user_id="ann"))
        assert [item["id"] for item in listed.profiles] == ["ann"]
        assert "score" not in listed.profiles[0]


async def test_a_profile_is_shown_to_its_owner_only_and_only_when_asked_for(tmp_path: Path) -> None:
    async with open_talk(tmp_path, stated_facts=stated_facts) as talk:
        assert (await talk.search("tea")).profiles == []
        assert (await talk.search("tea", user="anna", include_profile=True)).profiles == []
        assert (
            await talk.search("tea", user="ann", include_profile=True, caller=Caller(user_id="anna"))
        ).profiles == []
        assert (await talk.search("tea", agent_id="ann", include_profile=True)).profiles == []


async def test_a_deleted_profile_stays_away(tmp_path: Path) -> None:
    async with open_talk(tmp_path, stated_facts=stated_facts) as talk:
        reply = await talk.search("tea", include_profile=True, caller=hidden("profile", "ann"))
        assert reply.profiles == []


async def test_nobody_stated_anything(talk: Talk) -> None:
    assert (await talk.search("tea", include_profile=True)).profiles == []
