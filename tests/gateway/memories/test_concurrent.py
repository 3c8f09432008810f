import asyncio

import pytest

from memory_gateway.gateway.memories.concurrent import AT_ONCE, in_order


async def test_results_keep_the_order_of_their_arguments() -> None:
    async def slow_first(number: int) -> int:
        await asyncio.sleep(0.01 * (3 - number))
        return number * 10

    assert await in_order(slow_first, [0, 1, 2]) == [0, 10, 20]
    assert await in_order(slow_first, [1]) == [10]
    assert await in_order(slow_first, []) == []


async def test_the_first_failure_in_order_is_reported_even_when_a_later_one_came_sooner() -> None:
    cancelled: list[int] = []

    async def call(number: int) -> int:
        try:
            await asyncio.sleep({0: 0.0, 1: 0.03, 2: 0.0, 3: 60.0}[number])
        except asyncio.CancelledError:
            cancelled.append(number)
            raise
        if number in {1, 2}:
            raise ValueError(number)
        return number

    with pytest.raises(ValueError, match="1"):
        await in_order(call, [0, 1, 2, 3])
    assert cancelled == [3]


async def test_only_so_many_run_at_once() -> None:
    running = highest = 0

    async def call(_: int) -> None:
        nonlocal running, highest
        running += 1
        highest = max(highest, running)
        await asyncio.sleep(0.001)
        running -= 1

    await in_order(call, list(range(50)))
    assert highest == AT_ONCE


async def test_a_search_that_is_given_up_leaves_nothing_running() -> None:
    ended: list[int] = []

    async def call(number: int) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(number)

    searching = asyncio.create_task(in_order(call, [0, 1, 2]))
    await asyncio.sleep(0.01)
    searching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await searching
    assert sorted(ended) == [0, 1, 2]
