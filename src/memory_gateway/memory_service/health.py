"""``GET /api/v1/health``: 200 as long as the process answers; whether the database does stands in the body."""

import asyncio
from typing import Literal

import msgspec
from litestar import get
from litestar.di import NamedDependency

from memory_gateway.kit.errors import StorageUnavailable
from memory_gateway.memory_service.access import OPEN_TO_ALL
from memory_gateway.storage.port import Database, DatabaseFault, Row, Transaction

PING = "SELECT MAX(number) FROM schema_migrations"
_PATIENCE_SECONDS = 1.0


class HealthReply(msgspec.Struct, frozen=True):
    """The whole reply."""

    status: Literal["ok", "degraded"]
    service: Literal["memory-service"] = "memory-service"


class Health:
    """Asks the database how it is: a real read, off the event loop, so that a disk that hangs is given up in time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def report(self) -> HealthReply:
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._database.read(_ping)
        except (StorageUnavailable, DatabaseFault, TimeoutError):
            return HealthReply("degraded")
        return HealthReply("ok")


async def _ping(transaction: Transaction) -> list[Row]:
    return await transaction.fetch(PING)


@get("/health", opt=OPEN_TO_ALL)
async def get_health(health: NamedDependency[Health]) -> HealthReply:
    return await health.report()
