"""Work that goes on when the client that asked for it goes away."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

_logger = logging.getLogger(__name__)

T = TypeVar("T")


class Tasks:
    """Holds what runs, so that it is not lost half-way, and waits for it at the end."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def close(self) -> None:
        """Wait for all that runs."""
        while self._running:
            await asyncio.wait(self._running)


async def outcome(task: asyncio.Task[T]) -> T:
    """The task's result or error. Cancelling the wait does not cancel the task."""
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(_report)
        raise


def _report(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _logger.warning("the client went away, then its request failed", exc_info=error)
