import asyncio
from itertools import count
from pathlib import Path

from memory_gateway.kit.ids import uuid7_id
from memory_gateway.memory_service.entries.fading import DailyDecay
from memory_gateway.memory_service.entries.nearest import Nearest
from tests.fakes.entries import LOOK_ALIKES, Room, open_room


def daily(room: Room) -> DailyDecay:
    return DailyDecay(room.database, room.clock, uuid7_id, Nearest())


async def test_all_users_are_visited_once_a_day_whichever_process_asks(room: Room) -> None:
    one, other = daily(room), daily(room)
    assert await one.run_if_due()
    for user in LOOK_ALIKES:
        await room.say("The bus leaves at nine.", user, priority=0)
    room.clock.forward(seconds=86_399)
    assert [await one.run_if_due(), await other.run_if_due()] == [False, False]
    room.clock.forward(seconds=14 * 86_400)
    assert [await other.run_if_due(), await one.run_if_due()] == [True, False]
    assert [await room.stored(user) for user in LOOK_ALIKES] == [[]] * len(LOOK_ALIKES)


async def test_more_users_than_are_read_at_once_are_all_visited(room: Room) -> None:
    users = [f"user-{number}" for number in range(205)]
    await asyncio.gather(*(room.say("The bus leaves at nine.", user, priority=0) for user in users))
    room.clock.forward(seconds=15 * 86_400)
    await daily(room).run_if_due()
    assert await room.database.fetch_one("SELECT COUNT(*) FROM memory_entries") == (0,)


async def test_the_setting_starts_it(tmp_path: Path) -> None:
    async with open_room(tmp_path, decay_daily=True) as room:
        await room.say("The bus leaves at nine.", priority=0)
        room.clock.forward(seconds=15 * 86_400)
        room.entries.start()
        for _ in count():
            if await room.stored() == []:
                break
            await asyncio.sleep(0.01)


async def test_it_is_off_unless_it_is_set(room: Room) -> None:
    await room.say("The bus leaves at nine.", priority=0)
    room.clock.forward(seconds=15 * 86_400)
    room.entries.start()
    await asyncio.sleep(0.05)
    assert len(await room.stored()) == 1
