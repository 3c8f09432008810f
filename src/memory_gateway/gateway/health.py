"""``GET /health``: 200 as long as the process answers; what is wrong stands in the body. Open to everybody."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec
from litestar import get
from litestar.di import NamedDependency

from memory_gateway.blobs.port import BlobKind, BlobStore
from memory_gateway.gateway.errors import responses
from memory_gateway.kit.errors import MemoryGatewayError, StorageUnavailable
from memory_gateway.storage.port import Database, DatabaseFault, DatabaseKind
from memory_gateway.upstream.port import Upstream, UpstreamHealth

PING = "SELECT 1"
_PATIENCE_SECONDS = 5.0
_LEAST_FREE_MIB = 256


class UpstreamState(msgspec.Struct, frozen=True):
    """``backlog``: turns without a vector yet; null when unknown."""

    name: str
    healthy: bool
    backlog: int | None
    details: dict[str, Any]


class DatabaseState(msgspec.Struct, frozen=True):
    """Which kind of database it is, and whether it answers."""

    store: DatabaseKind
    healthy: bool


class DiskState(msgspec.Struct, frozen=True):
    """Whether the data folder can take more; ``reason`` says why not."""

    healthy: bool
    reason: str | None = None


class FilesState(msgspec.Struct, frozen=True):
    """Where users' files lie, and whether it can give and take them; ``reason`` says why not."""

    store: BlobKind
    healthy: bool
    reason: str | None = None


class HealthReply(msgspec.Struct, frozen=True):
    """``degraded``: some requests will fail or find less; ``capabilities`` says which."""

    status: Literal["ok", "degraded"]
    upstream: UpstreamState
    database: DatabaseState
    disk: DiskState
    files: FilesState
    capabilities: dict[str, bool]


def free_bytes_of(folder: Path) -> Callable[[], int]:
    """Measures how much the disk of this folder still takes. Raises `OSError`."""
    return lambda: shutil.disk_usage(folder).free


class Health:
    """Asks the database, the disk, the file store and the upstream how they are."""

    def __init__(self, database: Database, upstream: Upstream, free_bytes: Callable[[], int], blobs: BlobStore) -> None:
        self._database = database
        self._upstream = upstream
        self._free_bytes = free_bytes
        self._blobs = blobs

    async def report(self) -> HealthReply:
        upstream = await self._ask_upstream()
        database = DatabaseState(self._database.kind, await self._database_answers())
        disk = await self._look_at_disk()
        files = await self._ask_blobs()
        return HealthReply(
            "ok" if all(part.healthy for part in (upstream, database, disk, files)) else "degraded",
            UpstreamState(upstream.name, upstream.healthy, upstream.backlog, upstream.details),
            database,
            disk,
            files,
            upstream.capabilities,
        )

    async def _ask_upstream(self) -> UpstreamHealth:
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                return await self._upstream.health()
        except (MemoryGatewayError, DatabaseFault, TimeoutError):
            return UpstreamHealth(self._upstream.name, healthy=False, capabilities={})

    async def _ask_blobs(self) -> FilesState:
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                fault = await self._blobs.fault()
        except TimeoutError:
            fault = "the file store does not answer"
        return FilesState(self._blobs.kind, fault is None, fault)

    async def _look_at_disk(self) -> DiskState:
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                free = await asyncio.to_thread(self._free_bytes)  # a disk that hangs must not hold the loop
        except OSError:  # as is a timeout
            return DiskState(healthy=False, reason="the data folder does not answer")
        if free < _LEAST_FREE_MIB << 20:
            return DiskState(healthy=False, reason=f"less than {_LEAST_FREE_MIB} MiB are free for the data folder")
        return DiskState(healthy=True)

    async def _database_answers(self) -> bool:
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._database.fetch_one(PING)
        except (StorageUnavailable, DatabaseFault, TimeoutError):
            return False
        return True


@get("/health", summary="State of the gateway", tags=["operations"], responses=responses())
async def get_health(health: NamedDependency[Health]) -> HealthReply:
    return await health.report()
