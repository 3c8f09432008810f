import asyncio
import logging

import pytest

from memory_gateway.gateway.memories.tasks import Tasks, outcome


async def test_work_goes_on_when_the_wait_is_cancelled_and_close_waits_for_it() -> None:
    tasks, ended = Tasks(), asyncio.Event()

    async def work() -> str:
        await asyncio.sleep(0.02)
        ended.set()
        return "done"

    waiting = asyncio.create_task(outcome(tasks.start(work())))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not ended.is_set()
    await tasks.close()
    assert ended.is_set()


async def test_close_waits_for_work_that_work_begins() -> None:
    tasks, ended = Tasks(), []

    async def second() -> None:
        await asyncio.sleep(0.01)
        ended.append(2)

    async def first() -> None:
        tasks.start(second())
        ended.append(1)

    tasks.start(first())
    await tasks.close()
    assert ended == [1, 2]


async def test_the_one_who_waits_gets_the_error_and_it_is_logged_when_nobody_does(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tasks, gate = Tasks(), asyncio.Event()

    async def fail() -> None:
        await gate.wait()
        raise ValueError("too odd")

    gate.set()
    with caplog.at_level(logging.WARNING):
        with pytest.raises(ValueError, match="too odd"):
            await outcome(tasks.start(fail()))
        assert caplog.records == []
        gate.clear()
        waiting = asyncio.create_task(outcome(tasks.start(fail())))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        gate.set()
        await tasks.close()
        await asyncio.sleep(0)
    assert [record.message for record in caplog.records] == ["the client went away, then its request failed"]
