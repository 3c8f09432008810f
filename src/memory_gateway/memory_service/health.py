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


class ServiceHealth(msgspec.Struct, frozen=True):
    """The whole reply."""

    status: Literal["ok", "degraded"]
    service: Literal["memory-service"] = "memory-service"


@get("/health", opt=OPEN_TO_ALL)
async def get_health(database: NamedDependency[Database]) -> ServiceHealth:
    return ServiceHealth("ok" if await _answers(database) else "degraded")


async def _answers(database: Database) -> bool:
    """A real read, off the event loop: where the disk hangs, this gives up in time."""
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            await database.read(_ping)
    except (StorageUnavailable, DatabaseFault, TimeoutError):
        return False
    return True


async def _ping(transaction: Transaction) -> Row | None:
    return await transaction.fetch_one(PING)
