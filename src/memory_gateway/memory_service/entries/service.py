"""The room's one front: memories of users who never meet."""

from collections.abc import AsyncIterator
from typing import Any

from memory_gateway.kit.clock import Clock
from memory_gateway.kit.ids import IdMaker
from memory_gateway.memory_service.entries.schemas import (
    Category,
    EntryChanges,
    EntryQuery,
    MemoryEntry,
    NewEntry,
    Saved,
)
from memory_gateway.storage.port import Database

Memories = list[MemoryEntry]
Page = tuple[Memories, int]


class Entries:
    """`start` begins the background work; `close` writes what was counted: call it before the database is closed."""

    def __init__(self, database: Database, clock: Clock, new_id: IdMaker, *, decay_daily: bool = False) -> None:
        raise NotImplementedError

    async def create(self, new: NewEntry) -> Saved:
        """`MalformedRequest` without user or content, `InvalidInput` naming a field that breaks its rule."""
        raise NotImplementedError

    async def list(
        self,
        user_id: str | None,
        category: Category | None = None,
        min_importance: int = 0,
        limit: int = 50,
        offset: int = 0,
    ) -> Page:
        """A page, and how many match in all."""
        raise NotImplementedError

    async def get(self, entry_id: str) -> MemoryEntry:
        """`NotFound`. Counts one access afterwards."""
        raise NotImplementedError

    async def update(self, entry_id: str, changes: EntryChanges) -> None:
        """`NotFound`, `InvalidInput`."""
        raise NotImplementedError

    async def delete(self, entry_id: str) -> None:
        """Never fails for want of an entry."""
        raise NotImplementedError

    async def query(self, query: EntryQuery) -> Page:
        raise NotImplementedError

    async def consolidate(self, user_id: str | None) -> int:
        raise NotImplementedError

    async def decay(self, user_id: str | None, *, dry_run: bool = False) -> tuple[int, int]:
        raise NotImplementedError

    async def categories(self, user_id: str | None) -> dict[Category, int]:
        raise NotImplementedError

    async def stated_facts(self, user_id: str) -> Memories:
        raise NotImplementedError

    def export(self, user_id: str) -> AsyncIterator[dict[str, Any]]:
        raise NotImplementedError

    async def erase(self, user_id: str) -> None:
        raise NotImplementedError

    def start(self) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError
