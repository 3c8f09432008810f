"""A pool of connections to PostgreSQL. The driver's own costs as much processor time as the statement that is asked.

What it does besides (a proxy for each use, a reset of the session after it) is of no use here: whoever takes a
connection leaves it as it was, or it is given up.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from memory_gateway.kit.errors import StorageUnavailable

Connection = Any  # `asyncpg.Connection`, which has no types


class Connections:
    """At most ``most``, made when they are needed; the one that was used last is used next."""

    def __init__(self, connect: Callable[[], Awaitable[Connection]], most: int, *, patience_seconds: float) -> None:
        self._connect = connect
        self._most = most
        self._patience_seconds = patience_seconds
        self._slots = asyncio.Semaphore(most)
        self._idle: list[Connection] = []
        self._closed = False

    async def take(self) -> Connection:
        """A live one, as far as is known. `StorageUnavailable` when it is closed, `TimeoutError` when all are in use.

        Faults of making one pass through.
        """
        if self._closed:
            raise StorageUnavailable("the database is closed")
        if self._slots.locked():
            async with asyncio.timeout(self._patience_seconds):
                await self._slots.acquire()
        else:
            await self._slots.acquire()
        try:
            return self._waiting() or await self._connect()
        except BaseException:
            self._slots.release()
            raise

    def give_back(self, connection: Connection) -> None:
        """To be called once for each that was taken. One that is amid a transaction is given up, which undoes it."""
        if self._closed or connection.is_closed() or connection.is_in_transaction():
            connection.terminate()
        else:
            self._idle.append(connection)
        self._slots.release()

    def forget_idle(self) -> None:
        """The server has closed one: it has mostly closed those that wait as well."""
        while self._idle:
            self._idle.pop().terminate()

    async def close(self) -> None:
        """Wait for those in use, within bounds, and close all. Calling it twice is fine."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(OSError):  # a timeout, or a server that is gone
            async with asyncio.timeout(self._patience_seconds):
                for _ in range(self._most):
                    await self._slots.acquire()
                while self._idle:
                    await self._idle[-1].close()
                    self._idle.pop()
        self.forget_idle()

    def _waiting(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
        return None
