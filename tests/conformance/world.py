"""One upstream with the corpus in it, and short ways to ask."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar

from msgspec import UNSET, Struct, UnsetType

from memory_gateway.engine.schemas import (
    AddReply,
    AddRequest,
    Caller,
    FlushReply,
    FlushRequest,
    GetReply,
    GetRequest,
    Message,
    Method,
    SearchReply,
    SearchRequest,
)
from memory_gateway.upstream.port import Upstream
from tests.conformance.corpus import ANN, APP

METHODS: tuple[Method, ...] = ("keyword", "vector", "hybrid", "agentic")
Reply = TypeVar("Reply")
Filters = dict[str, Any] | UnsetType


class World(Struct, frozen=True):
    """``tries`` and ``pause``: how long this upstream may take until what was written shows."""

    name: Literal["embedded", "everos"]
    upstream: Upstream
    tries: int = 1
    pause: float = 0.0

    async def search(
        self, query: str = "note", filters: Filters = UNSET, *, caller: Caller = ANN, **options: Any
    ) -> SearchReply:
        """As Ann's, by keyword, in the corpus, unless the options say otherwise."""
        if "agent_id" not in options:
            options.setdefault("user_id", "ann")
        asked = {"method": "keyword", "top_k": 50, "app_id": APP, **options}
        return await self.upstream.search(SearchRequest(query, filters=filters, **asked), caller)

    async def get(self, memory_type: Any = "episode", filters: Filters = UNSET, **options: Any) -> GetReply:
        if "agent_id" not in options:
            options.setdefault("user_id", "ann")
        return await self.upstream.get(GetRequest(memory_type, filters=filters, **{"app_id": APP, **options}), ANN)

    async def add(self, session: str, *messages: Message, app: str, caller: Caller = ANN, **options: Any) -> AddReply:
        return await self.upstream.add(AddRequest(session, messages, app, **options), caller)

    async def flush(self, session: str, *, app: str) -> FlushReply:
        return await self.upstream.flush(FlushRequest(session, app), ANN)

    async def buffered(self, session: str, *, app: str) -> list[dict[str, Any]]:
        return (await self.search("note", {"session_id": session}, app_id=app)).unprocessed_messages

    async def until(self, ask: Callable[[], Awaitable[Reply]], shows: Callable[[Reply], bool]) -> Reply:
        """The first answer that shows it, or the last one."""
        for _ in range(self.tries - 1):
            reply = await ask()
            if shows(reply):
                return reply
            await asyncio.sleep(self.pause)
        return await ask()


def sessions(reply: SearchReply | GetReply) -> list[str]:
    return [episode["session_id"] for episode in reply.episodes]
