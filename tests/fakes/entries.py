"""Entries on a temporary database, with short words for what tests do with them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from memory_gateway.kit.ids import uuid7_id
from memory_gateway.memory_service.entries.schemas import EntryChanges, EntryQuery, MemoryEntry, NewEntry, Saved
from memory_gateway.memory_service.entries.service import Entries
from memory_gateway.storage.migrate import migrate
from tests.fakes.clock import TurnedClock
from tests.fakes.databases import AnyDatabase, open_test_database

LOOK_ALIKES = ("ann", "anna", "Ann", "a_b", "axb", "%", "an%", "ann ")


class Room:
    """One process's entries."""

    def __init__(self, database: AnyDatabase, clock: TurnedClock, **options: Any) -> None:
        self.database = database
        self.clock = clock
        self.entries = Entries(database, clock, uuid7_id, **options)

    async def say(self, content: str, user: str = "ann", **fields: Any) -> MemoryEntry:
        return (await self.save(content, user, **fields)).memory

    async def save(self, content: str, user: str = "ann", **fields: Any) -> Saved:
        return await self.entries.create(NewEntry(user_id=user, content=content, **fields))

    async def change(self, entry_id: str, **fields: Any) -> None:
        await self.entries.update(entry_id, EntryChanges(**fields))

    async def found(self, query: str, user: str = "ann", **fields: Any) -> list[str]:
        """The contents that a query finds."""
        return [entry.content for entry in (await self.query(query, user, **fields))[0]]

    async def query(self, query: str, user: str = "ann", **fields: Any) -> tuple[list[MemoryEntry], int]:
        return await self.entries.query(EntryQuery(user_id=user, query_text=query, **fields))

    async def listed(self, user: str = "ann", *page: Any) -> list[str]:
        """The contents of a page."""
        return [entry.content for entry in (await self.entries.list(user, *page))[0]]

    async def stored(self, user: str = "ann") -> list[dict[str, Any]]:
        """Every entry, oldest first, as it is exported. Counts no access."""
        return [entry async for entry in self.entries.export(user)]


@asynccontextmanager
async def open_room(folder: Path, clock: TurnedClock | None = None, **options: Any) -> AsyncIterator[Room]:
    database, clock = open_test_database(folder / "entries.db"), clock or TurnedClock()
    await migrate(database, clock)
    room = Room(database, clock, **options)
    try:
        yield room
    finally:
        await room.entries.close()
        await database.close()
