from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from memory_gateway.kit.errors import StorageUnavailable
from memory_gateway.memory_service.entries import consolidation
from memory_gateway.memory_service.entries.planning import Candidate, Planner
from memory_gateway.memory_service.entries.schemas import MemoryEntry
from memory_gateway.memory_service.entries.writing import Writing
from memory_gateway.storage.port import Work
from tests.fakes.clock import TurnedClock
from tests.fakes.entries import LOOK_ALIKES, Room, open_room

NINE = "The bus leaves at nine."
LATER = "2026-05-28T20:26:45.000Z"


async def say_apart(room: Room, contents: list[str], user: str = "ann", **fields: Any) -> list[MemoryEntry]:
    """Entries that a create would have merged: each gets its content by an update."""
    entries = [await room.say(f"{'零一二三四五六七八九'[at] * 5}", user, **fields) for at in range(len(contents))]
    for entry, content in zip(entries, contents, strict=True):
        await room.change(entry.id, content=content)
    return entries


async def test_alike_entries_become_one_and_nothing_is_lost(room: Room) -> None:
    one, two = await say_apart(room, [NINE, "The bus leaves at nine, Ann."])
    await room.change(one.id, keywords=["bus"], priority=0, category="event")
    await room.change(two.id, keywords=["BUS", "Ann"], priority=3, category="personal_info")
    for entry in (one, two, two):
        await room.entries.get(entry.id)
    room.clock.forward(seconds=5)
    await room.entries.get(one.id)
    assert await room.entries.consolidate("ann") == 1
    (stored,) = await room.stored()
    assert stored["id"] == two.id  # of equal importance, the higher priority stays
    assert stored["content"] == f"The bus leaves at nine, Ann.\n{NINE}"
    assert (stored["keywords"], stored["category"]) == (["BUS", "Ann"], "personal_info")
    assert (stored["importance"], stored["priority"], stored["source"]) == (6, 3, "consolidated")
    assert (stored["access_count"], stored["last_access"], stored["updated_at"]) == (4, LATER, LATER)
    for sentence in (NINE, "The bus leaves at nine, Ann."):
        assert await room.found(sentence) == [stored["content"]]
    assert (await room.save(NINE)).memory.id == two.id


async def test_a_second_run_merges_nothing(room: Room) -> None:
    await say_apart(room, [NINE, NINE, f"{NINE}!", "每天看早报", "每天看早报。"])
    assert await room.entries.consolidate("ann") == 3
    assert await room.entries.consolidate("ann") == 0
    assert sorted(await room.listed()) == [NINE + "\n" + NINE + "!", "每天看早报\n每天看早报。"]


@pytest.mark.parametrize(
    ("first", "second", "survivor"),
    [
        ({"importance": 4}, {"importance": 5}, 1),
        ({"importance": 5, "priority": 0}, {"importance": 4, "priority": 9}, 0),
        ({"priority": 1}, {"priority": 2}, 1),
        ({}, {}, 0),
    ],
)
async def test_the_more_important_survives_then_the_higher_priority_then_the_older(
    room: Room, first: dict[str, Any], second: dict[str, Any], survivor: int
) -> None:
    entries = await say_apart(room, [NINE, NINE])
    await room.change(entries[0].id, **first)
    await room.change(entries[1].id, **second)
    await room.entries.consolidate("ann")
    assert [one["id"] for one in await room.stored()] == [entries[survivor].id]


async def test_the_strongest_pair_goes_first(room: Room) -> None:
    # the second is alike to both; with the third in it, it is no more so to the first
    first, second, third = "abcdefghizklmnopqrst", "abcdefghijklmnopqrst", "abcdefghijklmnopqrsu"
    await say_apart(room, [first, second, third])
    assert await room.entries.consolidate("ann") == 1
    assert [one["content"] for one in await room.stored()] == [first, f"{second}\n{third}"]


async def test_signs_alone_are_alike_when_equal(room: Room) -> None:
    await say_apart(room, ["👍", " 👍", "🎉"])
    assert await room.entries.consolidate("ann") == 1


async def test_what_has_expired_is_left_alone(room: Room) -> None:
    await say_apart(room, [NINE, NINE], expires_at="2026-05-28T20:26:41Z")
    room.clock.forward(seconds=1)
    assert await room.entries.consolidate("ann") == 0
    assert len(await room.stored()) == 2


async def test_only_the_users_own_entries_are_merged(room: Room) -> None:
    for user in LOOK_ALIKES:
        await say_apart(room, [NINE, NINE], user)
    assert await room.entries.consolidate("a_b") == 1
    assert [len(await room.stored(user)) for user in LOOK_ALIKES] == [2 - (user == "a_b") for user in LOOK_ALIKES]


async def test_a_fault_leaves_everything_as_it_was(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    await say_apart(room, [NINE, NINE, "每天看早报", "每天看早报"])
    before = await room.stored()

    async def fail(*_: Any) -> None:
        raise StorageUnavailable("disk full")

    with monkeypatch.context() as fault:
        fault.setattr(Writing, "finish", fail)
        with pytest.raises(StorageUnavailable):
            await room.entries.consolidate("ann")
    assert await room.stored() == before
    assert await room.entries.consolidate("ann") == 2


Step = Callable[[Room, list[MemoryEntry]], Awaitable[Any]]
MEANWHILE: dict[str, Step] = {
    "a stranger is said": lambda room, _: room.save("今天下雨"),
    "a stranger becomes alike": lambda room, entries: room.change(entries[2].id, content=NINE),
    "the survivor takes in a new text": lambda room, _: room.save("The bus leaves at nine, always."),
    "the survivor says something else": lambda room, entries: room.change(entries[0].id, content="甲乙丙丁"),
    "the survivor is deleted": lambda room, entries: room.entries.delete(entries[0].id),
    "the other is deleted": lambda room, entries: room.entries.delete(entries[1].id),
    "the other becomes more important": lambda room, entries: room.change(entries[1].id, importance=9),
    "the user is erased": lambda room, _: room.entries.erase("ann"),
}
# how many are merged, and how many that hold the text are left
OUTCOMES = {
    "a stranger is said": (1, 1),
    "a stranger becomes alike": (2, 1),
    "the survivor takes in a new text": (0, 2),  # with it, the two are not alike any more
    "the survivor says something else": (0, 1),
    "the survivor is deleted": (0, 1),
    "the other is deleted": (0, 1),
    "the other becomes more important": (1, 1),
    "the user is erased": (0, 0),
}


@pytest.mark.parametrize("times", [1, 3, 4])
@pytest.mark.parametrize("name", list(MEANWHILE))
async def test_what_others_write_meanwhile_is_taken_into_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, times: int
) -> None:
    clock = TurnedClock()
    async with open_room(tmp_path, clock) as room, open_room(tmp_path, clock) as other:
        entries = await say_apart(room, [NINE, NINE, "每天看早报"])
        write = room.database.write
        steps = [MEANWHILE[name], *[MEANWHILE["a stranger is said"]] * (times - 1)]

        async def late_write(work: Work[Any], *, owner: str | None) -> Any:
            if steps:
                await steps.pop(0)(other, entries)
                await other.say(f"{'xyzvw'[len(steps)] * 9} {len(steps)}")
            return await write(work, owner=owner)

        monkeypatch.setattr(room.database, "write", late_write)
        merged = await room.entries.consolidate("ann")
        assert await room.entries.consolidate("ann") == 0
        holders = [one for one in await other.stored() if NINE in one["content"]]
        assert (merged, len(holders)) == OUTCOMES[name]
        if name == "the other becomes more important":
            assert holders[0]["id"] == entries[1].id


async def test_the_last_attempt_is_made_while_others_wait(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    await say_apart(room, [NINE, NINE])
    monkeypatch.setattr(consolidation, "_PATIENCE", 0)
    assert await room.entries.consolidate("ann") == 1


def test_thousands_that_say_the_same_are_not_millions_of_pairs() -> None:
    contents = ["[deleted]"] * 3000 + [" [deleted]"] * 3
    planner = Planner([Candidate(number, 1, content, 1 + number % 9, 0) for number, content in enumerate(contents, 1)])
    plan = planner.plan()
    assert len(plan.steps) == len(contents) - 1
    assert plan.contents == {}
