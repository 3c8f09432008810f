"""Who reads next: a few places, and those who wait for one are served user by user.

A user never holds every place, so one user's slow documents never keep all others waiting.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar

whose: ContextVar[str] = ContextVar("whose", default="")
"""For whom this task reads; the libraries between the request and its documents need not know."""


@contextmanager
def reading_for(user_id: str) -> Iterator[None]:
    """What is read in this block is read for this user."""
    token = whose.set(user_id)
    try:
        yield
    finally:
        whose.reset(token)


class Turns:
    """``places`` at once, of which one user has at most all but one."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._most = max(1, places - 1)
        self._held: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # in the order in which users are served

    @asynccontextmanager
    async def place(self, user_id: str) -> AsyncIterator[None]:
        """Wait for a turn, and hold a place in this block."""
        await self._wait(user_id)
        try:
            yield
        finally:
            self._give_back(user_id)

    async def _wait(self, user_id: str) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(user_id, deque()).append(turn)
        self._serve()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the place came in the same moment
                self._give_back(user_id)
            raise

    def _give_back(self, user_id: str) -> None:
        self._free += 1
        self._held[user_id] -= 1
        self._held += Counter()  # forgets those who hold nothing
        self._serve()

    def _serve(self) -> None:
        while self._free and (user_id := self._next()) is not None:
            turns = self._waiting.pop(user_id)
            turn = turns.popleft()
            if turns:
                self._waiting[user_id] = turns  # behind the others
            if not turn.done():
                self._free -= 1
                self._held[user_id] += 1
                turn.set_result(None)

    def _next(self) -> str | None:
        return next((user_id for user_id in self._waiting if self._held[user_id] < self._most), None)
