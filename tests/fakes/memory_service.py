"""The Memory-Service over a real database, spoken to without a network."""

from typing import Any

import httpx
from litestar import Litestar

from memory_gateway.memory_service.app import build_service_app
from memory_gateway.memory_service.entries.service import Entries
from memory_gateway.memory_service.thinking.service import Thinking
from memory_gateway.storage.port import Database
from tests.fakes.clock import TurnedClock

MAX_BODY_BYTES = 100_000
ADDRESS = "http://127.0.0.1:8094"


class ServiceHouse:
    """Everything that a test looks at or turns."""

    def __init__(self, database: Database, clock: TurnedClock, entries: Entries, thinking: Thinking) -> None:
        self.database = database
        self.clock = clock
        self.entries = entries
        self.thinking = thinking

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

    async def rows(self) -> list[tuple[Any, ...]]:
        """All that is stored, to see that nothing changed."""
        return [
            row
            for table in ("memory_entries", "thinking_logs")
            for row in await self.database.fetch(f"SELECT * FROM {table} ORDER BY id")
        ]
