"""Reading one user's entries as they are: pages, counts, everything."""

from collections.abc import AsyncIterator, Iterable
from typing import Any

import msgspec
from msgspec import Struct

from memory_gateway.memory_service.entries import store
from memory_gateway.memory_service.entries.owners import Owner, find_owner
from memory_gateway.memory_service.entries.schemas import CATEGORIES, Category, MemoryEntry
from memory_gateway.memory_service.entries.stored import memory_of
from memory_gateway.storage.port import Database, Reads, Row

_EXPORTED_AT_ONCE = 200
_DEEP = 500
_HIGHEST_IMPORTANCE_AND_MORE = 11
_ALL = 2**31 - 1


class PageWanted(Struct, frozen=True):
    """``category`` None for all; ``now`` decides what has expired."""

    user_id: str
    category: Category | None
    min_importance: int
    limit: int
    offset: int
    now: str

    @property
    def is_short(self) -> bool:
        """Whether the event loop can wait for it."""
        return self.limit + self.offset <= _DEEP


async def page(reads: Reads, wanted: PageWanted) -> tuple[list[MemoryEntry], int]:
    """The entries by importance, then priority, then the newest first; and how many there are in all."""
    owner = await find_owner(reads, wanted.user_id)
    if owner is None:
        return [], 0
    params = _params(wanted, owner)
    found = await _listed(reads, wanted, params)
    counts = await _counts(reads, params)
    total = sum(counts.values()) if wanted.category is None else counts.get(wanted.category, 0)
    return found, total


async def all_of(reads: Reads, user_id: str, categories: Iterable[Category], now: str) -> list[MemoryEntry]:
    """Every live entry of these categories, one category after the other, each in the order of a page."""
    owner = await find_owner(reads, user_id)
    found: list[MemoryEntry] = []
    if owner is not None:
        for category in categories:
            wanted = PageWanted(user_id, category, 0, _ALL, 0, now)
            found += await _listed(reads, wanted, _params(wanted, owner))
    return found


async def count_categories(reads: Reads, user_id: str, now: str) -> dict[Category, int]:
    """How many live entries there are of each category that has any, in the order of the API's page."""
    owner = await find_owner(reads, user_id)
    if owner is None:
        return {}
    counts = await _counts(reads, {"user_no": owner.user_no, "min_importance": 0, "now": now})
    return {category: counts[category] for category in CATEGORIES if counts.get(category)}


async def export_entries(database: Database, user_id: str) -> AsyncIterator[dict[str, Any]]:
    """Every entry, expired or not, oldest first."""
    owner = await find_owner(database, user_id)
    if owner is None:
        return
    wanted = {**owner.keys, "limit": _EXPORTED_AT_ONCE}
    while rows := await _page_by_key(database, wanted):
        for row in rows:
            yield {"kind": "memory_entry", **msgspec.to_builtins(memory_of(user_id, row))}
        wanted["after"] = rows[-1][14]


async def _page_by_key(database: Database, wanted: dict[str, int]) -> list[Row]:
    return await database.read(lambda transaction: transaction.fetch(store.PAGE_BY_KEY, wanted))


def _params(wanted: PageWanted, owner: Owner) -> dict[str, Any]:
    return {
        **msgspec.structs.asdict(wanted),
        "user_no": owner.user_no,
        "min_importance": _bounded(wanted.min_importance),
    }


async def _listed(reads: Reads, wanted: PageWanted, params: dict[str, Any]) -> list[MemoryEntry]:
    rows = await reads.fetch(store.LIST if wanted.category is None else store.LIST_CATEGORY, params)
    return [memory_of(wanted.user_id, row) for row in rows]


async def _counts(reads: Reads, params: dict[str, Any]) -> dict[str, int]:
    """Live entries by category: all of them are counted as they are written, the few that expired are taken off."""
    counts: dict[str, int] = dict(await reads.fetch(store.COUNTS, params))
    for category, expired in await reads.fetch(store.EXPIRED_COUNTS, params):
        counts[category] -= expired
    return counts


def _bounded(min_importance: int) -> int:
    return max(0, min(min_importance, _HIGHEST_IMPORTANCE_AND_MORE))
