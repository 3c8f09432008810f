"""``/api/v1/thinking``."""

from typing import Annotated

from litestar import get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from litestar.types import ControllerRouterHandler

from memory_gateway.memory_service.thinking.schemas import (
    NewThinking,
    ThinkingFound,
    ThinkingPage,
    ThinkingSaved,
    ThinkingStats,
)
from memory_gateway.memory_service.thinking.service import Thinking


@post("/thinking")
async def create_thinking(data: JSONBody[NewThinking], thinking: NamedDependency[Thinking]) -> ThinkingSaved:
    return ThinkingSaved("saved", await thinking.create(data))


@get("/thinking")
async def list_thinking(
    thinking: NamedDependency[Thinking],
    user_id: FromQuery[str | None] = None,
    limit: Annotated[int, QueryParameter(ge=1, le=500)] = 20,
    offset: Annotated[int, QueryParameter(ge=0, le=2**31 - 1)] = 0,
) -> ThinkingPage:
    return ThinkingPage(*await thinking.list(user_id, limit, offset))


@get("/thinking/stats")
async def get_thinking_stats(
    thinking: NamedDependency[Thinking], user_id: FromQuery[str | None] = None
) -> ThinkingStats:
    return await thinking.stats(user_id)


@get("/thinking/{log_id:str}")
async def get_thinking(log_id: FromPath[str], thinking: NamedDependency[Thinking]) -> ThinkingFound:
    return ThinkingFound(await thinking.get(log_id))


ROUTES: list[ControllerRouterHandler] = [create_thinking, list_thinking, get_thinking_stats, get_thinking]
