import asyncio
from pathlib import Path
from typing import Any

import pytest

from memory_gateway.kit.errors import InvalidInput, MalformedRequest
from memory_gateway.memory_service.entries.schemas import NewEntry
from tests.fakes.clock import TurnedClock
from tests.fakes.entries import LOOK_ALIKES, Room, open_room

NOW, LATER, YEARS_LATER = "2026-05-28T20:26:40.000Z", "2026-05-28T21:26:40.000Z", "2031-01-01T00:00:00.000Z"


async def test_a_new_memory_gets_every_default(room: Room) -> None:
    saved = await room.save("Likes tea. Hates milk.")
    entry = saved.memory
    assert (saved.merged, saved.similarity) == (False, None)
    assert (entry.user_id, entry.content, entry.summary) == ("ann", "Likes tea. Hates milk.", "Likes tea.")
    assert (entry.category, entry.priority, entry.importance) == ("knowledge", 1, 5)
    assert (entry.keywords, entry.session_id, entry.source, entry.access_count) == ([], "", "manual", 0)
    assert entry.last_access == entry.created_at == entry.updated_at == NOW
    assert entry.expires_at is None
    assert await room.entries.get(entry.id) == entry


async def test_what_is_given_is_stored_as_given(room: Room) -> None:
    given: dict[str, Any] = {
        "summary": " tea, mostly ",
        "category": "user_preference",
        "priority": 0,
        "importance": 7,
        "keywords": ["茶", "tea"],
        "session_id": "chat:1",
        "source": "conversation",
        "expires_at": YEARS_LATER,
    }
    entry = await room.say("  Likes tea\n", **given)
    assert {name: getattr(entry, name) for name in given} == given
    assert entry.content == "  Likes tea\n"
    assert await room.entries.get(entry.id) == entry


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({"priority": -1}, {"priority": 0}),
        ({"priority": 11}, {"priority": 10}),
        ({"priority": 10**30}, {"priority": 10}),
        ({"importance": 0}, {"importance": 1}),
        ({"importance": -(10**30)}, {"importance": 1}),
        ({"importance": 11}, {"importance": 10}),
        ({"keywords": [" Tea ", "tea", "", "TEA", "茶"]}, {"keywords": ["Tea", "茶"]}),
        ({"summary": " "}, {"summary": "Likes tea."}),
        ({"category": "", "source": ""}, {"category": "knowledge", "source": "manual"}),
        ({"expires_at": "2031-01-01T08:00:00.1234+08:00"}, {"expires_at": "2031-01-01T00:00:00.123Z"}),
        ({"expires_at": ""}, {"expires_at": None}),
    ],
)
async def test_fields_are_clamped_trimmed_and_completed(
    room: Room, given: dict[str, Any], stored: dict[str, Any]
) -> None:
    entry = await room.say("Likes tea.", **given)
    assert {name: getattr(entry, name) for name in stored} == stored


@pytest.mark.parametrize(("user", "content"), [(None, "x"), (" ", "x"), ("ann", None), ("ann", " \n"), (None, None)])
async def test_nothing_is_stored_without_user_and_content(room: Room, user: str | None, content: str | None) -> None:
    with pytest.raises(MalformedRequest, match=r"^缺少 user_id 或 content$"):
        await room.entries.create(NewEntry(user_id=user, content=content))


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"user_id": "x" * 65}, "user_id"),
        ({"user_id": "a\0"}, "user_id"),
        ({"user_id": "\ud800"}, "user_id"),
        ({"content": "a\0b"}, "content"),
        ({"content": "\udfff"}, "content"),
        ({"content": "x" * 200_001}, "content"),
        ({"summary": "\0"}, "summary"),
        ({"session_id": "\0"}, "session_id"),
        ({"keywords": ["fine", "\ud800"]}, "keywords.1"),
        ({"expires_at": "tomorrow"}, "expires_at"),
        ({"expires_at": "2031-01-01"}, "expires_at"),
        ({"expires_at": "2031-01-01T00:00:00"}, "expires_at"),
        ({"expires_at": "2031-02-30T00:00:00Z"}, "expires_at"),
        ({"expires_at": "9999-12-31T23:59:59.9999-12:00"}, "expires_at"),
    ],
)
async def test_a_field_that_breaks_its_rule_is_named(room: Room, given: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        await room.entries.create(NewEntry(**{"user_id": "ann", "content": "x", **given}))
    assert refused.value.field == field
    assert await room.stored() == []


async def test_any_other_name_of_up_to_64_characters_is_a_user(room: Room) -> None:
    for user in ("用户", "../b", "😀" * 64, "a b", "%"):
        assert (await room.say("x", user)).user_id == user


@pytest.mark.parametrize(
    ("first", "second", "similarity"),
    [
        ("Deploys on Fridays are allowed", "Deploys on Fridays are not allowed", 22 / 27),
        ("门禁码是4471", "门禁码是4477", 0.75),
        ("printer sits at 10.20.7.1", "printer sits at 10.20.9.1", 0.8),
    ],
)
async def test_a_merge_says_how_alike_and_keeps_both_readable(
    room: Room, first: str, second: str, similarity: float
) -> None:
    before = await room.say(first)
    room.clock.forward(seconds=3600)
    saved = await room.save(second)
    assert (saved.merged, saved.similarity) == (True, similarity)
    assert saved.memory.id == before.id
    assert saved.memory.content == f"{first}\n{second}"
    assert (saved.memory.source, saved.memory.summary) == ("merged", first)
    assert (saved.memory.created_at, saved.memory.updated_at, saved.memory.last_access) == (NOW, LATER, LATER)
    for sentence in (first, second):
        assert await room.found(sentence) == [saved.memory.content]


async def test_five_decisions_in_one_frame_are_all_there(room: Room) -> None:
    decisions = [f"The team decided to use {name} for the build" for name in ("make", "bazel", "nix", "just", "ninja")]
    for decision in decisions:
        await room.say(decision)
    for decision in decisions:
        (content,) = await room.found(decision)
        assert decision in content.split("\n")


async def test_just_below_three_quarters_nothing_merges(room: Room) -> None:
    await room.say("门禁码是447")
    assert not (await room.save("门禁码是448")).merged


async def test_the_same_text_never_makes_two(room: Room) -> None:
    ids = {
        (await room.say(text)).id
        for text in (
            "DGIA: caf\u00e9 at 5 o'clock",
            "DGIA:  cafe\u0301  at 5 o'clock ",
            "dgia: CAFÉ at 5 o'clock",
            "ＤＧＩＡ： café at 5 o'clock",
            "DGIA: café at 5 o'clock",
        )
    }
    assert len(ids) == len(await room.stored()) == 1


async def test_signs_alone_are_the_same_only_when_equal(room: Room) -> None:
    ids = [(await room.say(text)).id for text in ("👍", " 👍 ", "👍👍", "🎉", "!!!")]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 4


async def test_an_entry_absorbs_what_it_holds_however_much_it_has_grown(room: Room) -> None:
    grown = await room.say("My code is 4471. I like tea. My cat is old. The bus leaves at nine. 我爱喝咖啡。")
    saved = await room.save("the BUS leaves at nine.  My cat is old.")
    assert (saved.memory.id, saved.similarity, saved.memory.content) == (grown.id, 1.0, grown.content)


async def test_the_oldest_holder_of_all_sentences_absorbs_and_no_holder_of_some(room: Room) -> None:
    await room.say("Tea is good. Bread is better than any of it.")
    second = await room.say("Tea is good. 下雨了就不去。 The moon is far away tonight.")
    await room.say("Tea is good. 下雨了就不去。 An entirely different and longer end of the story.")
    assert (await room.save("Tea is good. 下雨了就不去。")).memory.id == second.id


async def test_the_most_alike_absorbs_and_of_equals_the_older(room: Room) -> None:
    await room.change((await room.say("first")).id, content="abcdefghijklmnop xy")
    close = await room.say("second")
    await room.change(close.id, content="abcdefghijklmnop q")
    await room.change((await room.say("third")).id, content="abcdefghijklmnop r")
    saved = await room.save("abcdefghijklmnop")
    assert (saved.memory.id, saved.similarity) == (close.id, 15 / 16)


async def test_twenty_identical_creates_at_once_leave_one_row_and_one_id(room: Room) -> None:
    saved = await asyncio.gather(*(room.save("The bus leaves at nine.") for _ in range(20)))
    assert len({one.memory.id for one in saved}) == 1
    assert [one.merged for one in saved].count(False) == 1
    assert len(await room.stored()) == 1


async def test_users_who_look_alike_merge_nothing_of_each_other(room: Room) -> None:
    ids = {(await room.say("The bus leaves at nine.", user)).id for user in LOOK_ALIKES}
    assert len(ids) == len(LOOK_ALIKES)
    for user in LOOK_ALIKES:
        assert await room.listed(user) == ["The bus leaves at nine."]


async def test_what_expired_absorbs_nothing(room: Room) -> None:
    old = await room.say("The bus leaves at nine.", expires_at="2026-05-28T20:26:41Z")
    room.clock.forward(seconds=1)
    saved = await room.save("The bus leaves at nine.")
    assert (saved.merged, saved.memory.id != old.id) == (False, True)
    assert (await room.save("The bus leaves at nine!")).memory.id == saved.memory.id


async def test_what_was_deleted_can_be_said_again(room: Room) -> None:
    gone = await room.say("The bus leaves at nine.")
    await room.entries.delete(gone.id)
    saved = await room.save("The bus leaves at nine.")
    assert (saved.merged, saved.memory.id != gone.id) == (False, True)
    assert await room.found("bus") == ["The bus leaves at nine."]


async def test_twelve_writers_in_two_processes_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    clock = TurnedClock()
    async with open_room(tmp_path, clock) as one, open_room(tmp_path, clock) as other:

        async def write(number: int) -> list[str]:
            process = (one, other)[number % 2]
            own = [f"{name}{number:02} owns the {place}" for name, place in zip(_NAMES, _PLACES, strict=True)]
            shared = ["The bus leaves at nine.", "每天早上看早报。"]
            return [(await process.say(text)).id for text in own + shared]

        ids = await asyncio.gather(*(write(number) for number in range(12)))
        for room in (one, other):
            texts = [entry["content"] for entry in await room.stored()]
            assert len(texts) == len(set(texts))
            for entry_id in {entry_id for written in ids for entry_id in written}:
                assert (await room.entries.get(entry_id)).id == entry_id
        assert len({written[-1] for written in ids}) == len({written[-2] for written in ids}) == 1


_NAMES = ("Quentin", "Wolfgang", "Xanthippe", "Yves", "Zebulon")
_PLACES = ("harbour crane", "old mill by the river", "third greenhouse", "blue van", "key to the attic")
