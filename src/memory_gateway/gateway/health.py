"""``GET /health``: 200 as long as the process answers; what is wrong stands in the body. Open to everybody."""

import asyncio
from typing import Any, Literal

import msgspec
from litestar import get
from litestar.di import NamedDependency

from memory_gateway.gateway.errors import responses
from memory_gateway.kit.errors import MemoryGatewayError, StorageUnavailable
from memory_gateway.storage.port import Database, DatabaseFault
from memory_gateway.upstream.port import Upstream, UpstreamHealth

PING = "SELECT 1"
_PATIENCE_SECONDS = 5.0


class UpstreamState(msgspec.Struct, frozen=True):
    """``backlog``: turns without a vector yet; null when unknown."""

    name: str
    healthy: bool
    backlog: int | None
    details: dict[str, Any]


class DatabaseState(msgspec.Struct, frozen=True):
    """Whether the database answers."""

    healthy: bool


class HealthReply(msgspec.Struct, frozen=True):
    """``degraded``: some requests will fail or find less; ``capabilities`` says which."""

    status: Literal["ok", "degraded"]
    upstream: UpstreamState
    database: DatabaseState
    capabilities: dict[str, bool]


class Health:
    """Asks the database and the upstream how they are."""

    def __init__(self, database: Database, upstream: Upstream) -> None:
        self._database = database
        self._upstream = upstream

    async def report(self) -> HealthReply:
        upstream = await self._ask_upstream()
        database = DatabaseState(await self._database_answers())
        return HealthReply(
            "ok" if upstream.healthy and database.healthy else "degraded",
            UpstreamState(upstream.name, upstream.healthy, upstream.backlog, upstream.details),
            database,
            upstream.capabilities,
        )

    async def _ask_upstream(self) -> UpstreamHealth:
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                return await self._upstream.health()
        except (MemoryGatewayError, DatabaseFault, TimeoutError):
            return UpstreamHealth(self._upstream.name, healthy=False, capabilities={})

    async def _database_answers(self) -> bool:
        try:
            await self._database.fetch_one(PING)
        except (StorageUnavailable, DatabaseFault):
            return False
        return True


@get("/health", summary="State of the gateway", tags=["operations"], responses=responses())
async def get_health(health: NamedDependency[Health]) -> HealthReply:
    return await health.report()
