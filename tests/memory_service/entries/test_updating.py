from typing import Any

import pytest

from memory_gateway.kit.errors import InvalidInput
from tests.fakes.entries import Room

LATER = "2026-05-28T20:26:45.000Z"


async def test_only_what_is_given_changes(room: Room) -> None:
    entry = await room.say("Likes tea. Often.", keywords=["tea"], session_id="chat:1", importance=7)
    (before,) = await room.stored()
    room.clock.forward(seconds=5)
    await room.change(entry.id, priority=3)
    assert await room.stored() == [{**before, "priority": 3, "updated_at": LATER}]


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({"priority": 99, "importance": -3}, {"priority": 10, "importance": 1}),
        ({"priority": 0}, {"priority": 0}),
        ({"keywords": ["茶 ", "茶"]}, {"keywords": ["茶"]}),
        ({"keywords": []}, {"keywords": []}),
        ({"category": "task", "source": "conversation"}, {"category": "task", "source": "conversation"}),
        ({"category": "", "source": ""}, {"category": "knowledge", "source": "manual"}),
        ({"expires_at": "2031-01-01T00:00:00Z"}, {"expires_at": "2031-01-01T00:00:00.000Z"}),
        ({"content": "Hates milk. Sorry."}, {"content": "Hates milk. Sorry.", "summary": "Hates milk."}),
        ({"content": "Hates milk.", "summary": "no milk"}, {"content": "Hates milk.", "summary": "no milk"}),
        ({}, {"content": "Likes tea. Often.", "summary": "Likes tea."}),
    ],
)
async def test_an_update_is_clamped_trimmed_and_completed(
    room: Room, given: dict[str, Any], stored: dict[str, Any]
) -> None:
    entry = await room.say("Likes tea. Often.", keywords=["tea"])
    await room.change(entry.id, **given)
    found = await room.entries.get(entry.id)
    assert {name: getattr(found, name) for name in stored} == stored


async def test_a_summary_of_the_users_stays_until_it_is_given_up(room: Room) -> None:
    entry = await room.say("Likes tea.", summary="tea")
    await room.change(entry.id, content="Likes milk.")
    assert (await room.entries.get(entry.id)).summary == "tea"
    await room.change(entry.id, summary="")
    assert (await room.entries.get(entry.id)).summary == "Likes milk."
    await room.change(entry.id, content="Likes water.")
    assert (await room.entries.get(entry.id)).summary == "Likes water."


async def test_an_end_can_be_taken_away(room: Room) -> None:
    entry = await room.say("Likes tea.", expires_at="2031-01-01T00:00:00Z")
    await room.change(entry.id, expires_at=None)
    assert (await room.entries.get(entry.id)).expires_at is None


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"content": ""}, "content"),
        ({"content": " \n"}, "content"),
        ({"content": "\0"}, "content"),
        ({"summary": "\ud800"}, "summary"),
        ({"keywords": ["\0"]}, "keywords.0"),
        ({"expires_at": "soon"}, "expires_at"),
    ],
)
async def test_a_field_that_breaks_its_rule_is_named(room: Room, given: dict[str, Any], field: str) -> None:
    entry = await room.say("Likes tea.")
    with pytest.raises(InvalidInput) as refused:
        await room.change(entry.id, **given)
    assert refused.value.field == field
    assert await room.entries.get(entry.id) == entry


async def test_words_and_likeness_follow_the_content(room: Room) -> None:
    entry = await room.say("The bus leaves at nine.")
    await room.change(entry.id, content="每天早上看早报。")
    assert await room.found("bus") == []
    assert await room.found("早报") == ["每天早上看早报。"]
    assert not (await room.save("The bus leaves at nine!")).merged
    assert (await room.save("每天早上看早报")).memory.id == entry.id


async def test_an_update_merges_nothing(room: Room) -> None:
    one, two = await room.say("The bus leaves at nine."), await room.say("每天早上看早报。")
    await room.change(two.id, content="The bus leaves at nine.")
    assert [entry["id"] for entry in await room.stored()] == [one.id, two.id]
