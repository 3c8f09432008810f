"""The Memory-Service over a real database, spoken to without a network."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from litestar import Litestar

from memory_gateway.kit.ids import uuid7_id
from memory_gateway.memory_service.app import build_service_app
from memory_gateway.memory_service.entries.service import Entries
from memory_gateway.memory_service.thinking.service import Thinking
from memory_gateway.storage.migrate import migrate
from tests.fakes.clock import TurnedClock
from tests.fakes.databases import AnyDatabase, open_test_database, tables

MAX_BODY_BYTES = 100_000
ADDRESS = "http://127.0.0.1:8094"
_OF_THE_GATEWAY = {"memory_attachments", "memory_overrides", "memory_tombstones"}


class ServiceHouse:
    """Everything that a test looks at or turns."""

    def __init__(self, database: AnyDatabase) -> None:
        self.database = database
        self.clock = TurnedClock()
        self.entries = Entries(database, self.clock, uuid7_id)
        self.thinking = Thinking(database, self.clock)

    def app(self, *, host: str = "127.0.0.1", service_token: str | None = None) -> Litestar:
        return build_service_app(
            entries=self.entries,
            thinking=self.thinking,
            database=self.database,
            host=host,
            service_token=service_token,
            max_body_bytes=MAX_BODY_BYTES,
        )

    def client(self, address: str = ADDRESS, **access: Any) -> httpx.AsyncClient:
        """A fault of the app becomes its 500, as it does on a server."""
        transport = httpx.ASGITransport(app=self.app(**access), raise_app_exceptions=False)  # type: ignore[arg-type]
        return httpx.AsyncClient(transport=transport, base_url=address)

    async def tables(self) -> list[str]:
        """Those of the service."""
        return [name for name in await tables(self.database, "memory_", "thinking_") if name not in _OF_THE_GATEWAY]

    async def rows(self) -> list[tuple[Any, ...]]:
        """All that is stored, to see that nothing changed."""
        return [
            (table, *row)
            for table in await self.tables()
            for row in sorted(await self.database.fetch(f"SELECT * FROM {table}"), key=repr)
        ]


@asynccontextmanager
async def open_house(folder: Path) -> AsyncIterator[ServiceHouse]:
    """On a new database in the folder; its background work runs until the end."""
    house = ServiceHouse(open_test_database(folder / "service.db"))
    await migrate(house.database, house.clock)
    house.entries.start()
    try:
        yield house
    finally:
        await house.entries.close()
        await house.database.close()
