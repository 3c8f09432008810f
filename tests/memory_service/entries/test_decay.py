from typing import Any

import pytest

from memory_gateway.kit.clock import rfc3339
from memory_gateway.memory_service.entries.decay import Idle, judge, moment
from tests.fakes.entries import LOOK_ALIKES, Room

NOW_MS = 1_780_000_000_000
DAY_MS = 86_400_000


def days_ago(days: float, *, and_ms: int = 0) -> str:
    return rfc3339(NOW_MS - round(days * DAY_MS) - and_ms)


def idle(**fields: Any) -> Idle:
    """An entry that both phases take, but for what is given."""
    given: dict[str, Any] = {
        "entry_key": 1,
        "category": "knowledge",
        "priority": 1,
        "importance": 2,
        "access_count": 0,
        "last_access": days_ago(31),
        "demoted_at": None,
        "expires_at": None,
    }
    return Idle(**{**given, **fields})


@pytest.mark.parametrize(
    ("fields", "verdict"),
    [
        ({}, (True, True)),
        # phase 1, clause by clause
        ({"access_count": 2}, (True, False)),
        ({"access_count": 3}, (False, False)),
        ({"last_access": days_ago(30)}, (False, False)),
        ({"last_access": days_ago(30, and_ms=1)}, (True, True)),
        ({"last_access": days_ago(60), "demoted_at": days_ago(30)}, (False, False)),
        ({"last_access": days_ago(60), "demoted_at": days_ago(30, and_ms=1)}, (True, True)),
        ({"last_access": days_ago(1), "demoted_at": days_ago(60)}, (False, False)),
        ({"importance": 3}, (False, False)),
        ({"importance": 1}, (True, True)),
        ({"priority": 2}, (True, False)),
        ({"priority": 10}, (True, False)),
        ({"category": "personal_info"}, (False, False)),
        ({"category": "user_preference"}, (False, False)),
        ({"category": "relationship"}, (True, True)),
        # phase 2, clause by clause
        ({"priority": 0}, (False, True)),
        ({"priority": 0, "access_count": 1}, (False, False)),
        ({"priority": 0, "last_access": days_ago(14)}, (False, False)),
        ({"priority": 0, "last_access": days_ago(14, and_ms=1)}, (False, True)),
        ({"priority": 0, "last_access": days_ago(15), "demoted_at": days_ago(1)}, (False, True)),
        ({"priority": 0, "importance": 10, "category": "personal_info"}, (False, True)),
        ({"priority": 1, "importance": 10}, (False, False)),
        # what has expired
        ({"expires_at": days_ago(0)}, (False, True)),
        ({"expires_at": days_ago(0, and_ms=-1), "priority": 5}, (True, False)),
        ({"expires_at": days_ago(1), "priority": 5, "access_count": 9, "last_access": days_ago(0)}, (False, True)),
    ],
)
def test_each_clause_and_edge(fields: dict[str, Any], verdict: tuple[bool, bool]) -> None:
    assert judge(idle(**fields), moment(NOW_MS)) == verdict


async def test_a_decay_at_one_instant_charges_idle_time_once(room: Room) -> None:
    entry = await room.say("The bus leaves at nine.", importance=2, priority=3)
    room.clock.forward(seconds=30 * 86_400)
    assert await room.entries.decay("ann") == (0, 0)
    room.clock.forward(seconds=0.001)
    assert await room.entries.decay("ann") == (1, 0)
    assert await room.entries.decay("ann") == (0, 0)
    (stored,) = await room.stored()
    assert (stored["priority"], stored["updated_at"]) == (2, entry.updated_at)


async def test_daily_decay_lowers_an_entry_a_level_a_month_and_then_deletes_it(room: Room) -> None:
    await room.say("The bus leaves at nine.", importance=2, priority=2)
    history = []
    for day in range(1, 70):
        room.clock.forward(seconds=86_400)
        decayed = await room.entries.decay("ann")
        if decayed != (0, 0):
            history.append((day, *decayed))
    assert history == [(31, 1, 0), (62, 1, 1)]
    assert await room.stored() == []


async def test_an_entry_lowered_to_zero_can_count_in_both(room: Room) -> None:
    await room.say("The bus leaves at nine.", importance=2)
    kept = await room.say("每天看早报", importance=2)
    await room.entries.get(kept.id)
    room.clock.forward(seconds=31 * 86_400)
    assert await room.entries.decay("ann", dry_run=True) == (2, 1)
    before = await room.stored()
    assert await room.entries.decay("ann", dry_run=True) == (2, 1)
    assert await room.stored() == before
    assert await room.entries.decay("ann") == (2, 1)
    assert [(one["id"], one["priority"]) for one in await room.stored()] == [(kept.id, 0)]


async def test_an_access_that_waits_to_be_written_saves_its_entry(room: Room) -> None:
    entry = await room.say("The bus leaves at nine.", importance=2)
    room.clock.forward(seconds=31 * 86_400)
    await room.entries.get(entry.id)
    assert await room.entries.decay("ann") == (0, 0)


async def test_what_expired_is_removed_and_counted(room: Room) -> None:
    await room.say("The bus leaves at nine.", expires_at="2026-05-28T20:26:41Z", priority=9, importance=9)
    room.clock.forward(seconds=1)
    assert await room.entries.decay("ann", dry_run=True) == (0, 1)
    assert await room.entries.decay("ann") == (0, 1)
    assert await room.stored() == []
    assert await room.entries.categories("ann") == {}


async def test_what_decayed_is_found_and_absorbs_no_more(room: Room) -> None:
    gone = await room.say("The bus leaves at nine.", priority=0)
    room.clock.forward(seconds=15 * 86_400)
    assert await room.entries.decay("ann") == (0, 1)
    assert await room.found("bus") == []
    saved = await room.save("The bus leaves at nine.")
    assert (saved.merged, saved.memory.id != gone.id) == (False, True)


async def test_only_the_users_own_entries_decay(room: Room) -> None:
    for user in LOOK_ALIKES:
        await room.say("The bus leaves at nine.", user, priority=0)
    room.clock.forward(seconds=15 * 86_400)
    assert await room.entries.decay("a_b") == (0, 1)
    assert [len(await room.stored(user)) for user in LOOK_ALIKES] == [int(user != "a_b") for user in LOOK_ALIKES]
