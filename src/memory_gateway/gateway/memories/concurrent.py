"""Calls that run side by side, answered for in order."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

A = TypeVar("A")
R = TypeVar("R")

AT_ONCE = 8


async def in_order(call: Callable[[A], Awaitable[R]], arguments: Sequence[A]) -> list[R]:
    """The results in the arguments' order. The first call in that order that fails is reported, those after it are
    cancelled."""
    if len(arguments) == 1:
        return [await call(arguments[0])]
    gate = asyncio.Semaphore(AT_ONCE)

    async def gated(argument: A) -> R:
        async with gate:
            return await call(argument)

    tasks = [asyncio.create_task(gated(argument)) for argument in arguments]
    try:
        return [await task for task in tasks]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
