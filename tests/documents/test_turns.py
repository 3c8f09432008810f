"""Whose turn it is: users are served one after the other, and nobody holds every place."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from memory_gateway.documents.turns import Turns, reading_for, whose


class Desk:
    """Readers at the places of `Turns`; each reads until it is told to stop."""

    def __init__(self, places: int) -> None:
        self.turns = Turns(places)
        self.at_work: list[str] = []
        self.served: list[str] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._stops: dict[str, list[asyncio.Event]] = {}

    async def come(self, *user_ids: str) -> list[asyncio.Task[None]]:
        tasks = [asyncio.create_task(self._read(user_id)) for user_id in user_ids]
        self._tasks += tasks
        await settle()
        return tasks

    async def finish(self, user_id: str) -> None:
        """The first reader of this user that is at work goes."""
        self._stops[user_id].pop(0).set()
        await settle()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _read(self, user_id: str) -> None:
        async with self.turns.place(user_id):
            stop = asyncio.Event()
            self._stops.setdefault(user_id, []).append(stop)
            self.at_work.append(user_id)
            self.served.append(user_id)
            try:
                await stop.wait()
            finally:
                self.at_work.remove(user_id)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    desk = Desk(2)
    yield desk
    await desk.close()


async def test_one_of_two_places_is_always_left_for_somebody_else(desk: Desk) -> None:
    await desk.come("ann", "ann", "ann")
    assert desk.at_work == ["ann"]
    await desk.come("anna")
    assert desk.at_work == ["ann", "anna"]


@pytest.mark.parametrize(("places", "most"), [(1, 1), (2, 1), (3, 2), (4, 3)])
async def test_a_user_holds_at_most_all_places_but_one(places: int, most: int) -> None:
    desk = Desk(places)
    await desk.come(*["ann"] * 5)
    assert len(desk.at_work) == most
    await desk.close()


async def test_those_who_wait_are_served_user_by_user(desk: Desk) -> None:
    await desk.come("ann", "a_b", "ann", "ann", "ann", "Ann", "axb", "Ann")
    assert desk.served == ["ann", "a_b"]
    while desk.at_work:
        await desk.finish(desk.at_work[0])
    assert desk.served[2:] == ["ann", "Ann", "axb", "ann", "Ann", "ann"]


async def test_who_goes_away_while_waiting_holds_nobody_up(desk: Desk) -> None:
    await desk.come("ann", "anna")
    waiting = await desk.come("ann", "axb")
    waiting[1].cancel()
    await desk.finish("anna")
    assert desk.at_work == ["ann"]
    await desk.come("a_b")
    assert desk.at_work == ["ann", "a_b"]


async def test_a_place_that_comes_to_one_who_goes_in_the_same_moment_is_given_on() -> None:
    desk = Desk(1)
    await desk.come("ann")
    (leaving, _) = await desk.come("anna", "axb")
    desk._stops["ann"].pop(0).set()
    await asyncio.sleep(0)  # the place is given back, and has come to anna, who does not know it yet
    leaving.cancel()
    await settle()
    assert desk.at_work == ["axb"]
    await desk.close()


async def test_an_error_at_a_place_gives_it_back(desk: Desk) -> None:
    with pytest.raises(ValueError, match="x"):
        async with desk.turns.place("ann"):
            raise ValueError("x")
    await desk.come("ann")
    assert desk.at_work == ["ann"]
    assert desk.turns._waiting == {}


async def test_everybody_reads_for_themselves() -> None:
    async def read(user_id: str) -> str:
        with reading_for(user_id):
            await asyncio.sleep(0)
            return whose.get()

    assert list(await asyncio.gather(read("ann"), read("anna"))) == ["ann", "anna"]
    assert whose.get() == ""
