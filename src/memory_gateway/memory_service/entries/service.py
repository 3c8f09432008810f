"""The room's one front: memories of users who never meet."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from memory_gateway.kit.clock import Clock, rfc3339
from memory_gateway.kit.errors import InvalidInput, NotFound
from memory_gateway.kit.ids import IdMaker
from memory_gateway.kit.text import has_nul_or_surrogate
from memory_gateway.memory_service.entries import store
from memory_gateway.memory_service.entries.accesses import Accesses
from memory_gateway.memory_service.entries.consolidation import Consolidation
from memory_gateway.memory_service.entries.drafts import (
    Draft,
    begun,
    changed,
    check_changes,
    checked_range,
    checked_user,
    draft_of,
)
from memory_gateway.memory_service.entries.fading import DailyDecay, fade, preview
from memory_gateway.memory_service.entries.listing import PageWanted, count_categories, export_entries, page
from memory_gateway.memory_service.entries.matching import Matcher, is_live
from memory_gateway.memory_service.entries.merging import absorbed
from memory_gateway.memory_service.entries.nearest import Nearest
from memory_gateway.memory_service.entries.owners import find_owner, load_owner, open_owner
from memory_gateway.memory_service.entries.querying import MOST_TERMS, Wanted, find_entries, terms_of
from memory_gateway.memory_service.entries.schemas import (
    PROTECTED,
    Category,
    EntryChanges,
    EntryQuery,
    MemoryEntry,
    NewEntry,
    Saved,
)
from memory_gateway.memory_service.entries.stored import StoredEntry, digest_of, stored_entry
from memory_gateway.memory_service.entries.writing import Writing
from memory_gateway.storage.port import Database, Transaction

MOST_LISTED = 1000
_MOST_OFFSET = 2**31 - 1
_DEFAULT_QUERY_LIMIT = 10
_SHORT = 10_000  # characters that are read in a few milliseconds

Memories = list[MemoryEntry]
Page = tuple[Memories, int]


class Entries:
    """`start` begins the background work; `close` writes what was counted: call it before the database is closed."""

    def __init__(self, database: Database, clock: Clock, new_id: IdMaker, *, decay_daily: bool = False) -> None:
        self._database = database
        self._clock = clock
        self._new_id = new_id
        self._nearest = Nearest()
        self._accesses = Accesses(database, clock)
        self._daily = DailyDecay(database, clock, new_id, self._nearest) if decay_daily else None

    def start(self) -> None:
        """Needs a running event loop."""
        if self._daily is not None:
            self._daily.start()

    async def close(self) -> None:
        """Every access that was answered is in the database when this returns."""
        if self._daily is not None:
            await self._daily.stop()
        await self._accesses.close()

    async def create(self, new: NewEntry) -> Saved:
        """Store a memory, or let one that says the same absorb it.

        `MalformedRequest` without user or content, `InvalidInput` naming a field that breaks its rule.
        """
        draft = draft_of(new, self._new_id())
        content = draft.memory.content
        digest = digest_of(content) if len(content) <= _SHORT else await asyncio.to_thread(digest_of, content)

        async def work(transaction: Transaction) -> Saved:
            now = rfc3339(self._clock())
            memory = begun(draft.memory, now)
            owner = await open_owner(transaction, memory.user_id)
            writing = Writing(transaction, owner, self._nearest)
            found = await Matcher(transaction, owner, self._nearest, now).absorber(content, digest)
            if found is None:
                await writing.add(memory, digest, summary_derived=draft.summary_derived)
            else:
                memory = absorbed(found.entry.memory, memory)
                await _rewrite(writing, found.entry, Draft(memory, found.entry.summary_derived))
            await writing.finish()
            return Saved(memory, found is not None, None if found is None else float(found.similarity))

        return await self._database.write(work)

    async def get(self, entry_id: str) -> MemoryEntry:
        """A live entry, or `NotFound`. The access is counted afterwards."""
        row = None
        if not has_nul_or_surrogate(entry_id):
            row = await self._database.fetch_one(store.FIND_BY_ID, {"id": entry_id})
        if row is None or not is_live(entry := stored_entry(row[-1], row), rfc3339(self._clock())):
            raise NotFound("记忆不存在")
        self._accesses.count(entry.entry_key)
        return entry.memory

    async def update(self, entry_id: str, changes: EntryChanges) -> None:
        """Change what is given. `NotFound`, or `InvalidInput` naming a field that breaks its rule."""
        check_changes(changes)

        async def work(transaction: Transaction) -> None:
            now = rfc3339(self._clock())
            entry = await _find(transaction, entry_id)
            if entry is None or not is_live(entry, now):
                raise NotFound("记忆不存在")
            writing = await self._writing(transaction, entry)
            await _rewrite(writing, entry, changed(Draft(entry.memory, entry.summary_derived), changes, now))
            await writing.finish()

        await self._database.write(work)

    async def delete(self, entry_id: str) -> None:
        """The entry is gone afterwards, whether or not it was there."""

        async def work(transaction: Transaction) -> None:
            entry = await _find(transaction, entry_id)
            if entry is not None:
                writing = await self._writing(transaction, entry)
                await writing.remove(entry)
                await writing.finish()

        await self._database.write(work)

    async def list(
        self,
        user_id: str | None,
        category: Category | None = None,
        min_importance: int = 0,
        limit: int = 50,
        offset: int = 0,
    ) -> Page:
        """A page by importance, then priority, then the newest first; and how many match in all."""
        wanted = PageWanted(
            checked_user(user_id),
            category,
            min_importance,
            checked_range("limit", limit, 1, MOST_LISTED),
            checked_range("offset", offset, 0, _MOST_OFFSET),
            rfc3339(self._clock()),
        )
        if wanted.is_short:
            return await page(self._database, wanted)
        return await self._database.read(lambda transaction: page(transaction, wanted))

    async def query(self, query: EntryQuery) -> Page:
        """The entries in which every word of the query stands, and how many there are; equal contents count once."""
        user_id, query_text = checked_user(query.user_id), query.query_text or ""
        if has_nul_or_surrogate(query_text):
            raise InvalidInput("must not hold NUL or lone surrogates", field="query_text")
        limit = _DEFAULT_QUERY_LIMIT if query.limit is None else query.limit
        checked_range("limit", limit, 1, MOST_LISTED)
        terms = terms_of(query_text)
        if len(terms) > MOST_TERMS:
            raise InvalidInput(f"must have at most {MOST_TERMS} different words", field="query_text")
        wanted = Wanted(terms, query.category or None, query.min_importance or 0, rfc3339(self._clock()))

        async def work(transaction: Transaction) -> Page:
            owner = await find_owner(transaction, user_id)
            return ([], 0) if owner is None else await find_entries(transaction, owner, wanted, limit)

        return await self._database.read(work)

    async def consolidate(self, user_id: str | None) -> int:
        """Merge entries that say the same; how many are gone into others."""
        owner_id = checked_user(user_id)
        await self._accesses.flush()
        return await Consolidation(self._database, self._nearest, owner_id, rfc3339(self._clock())).run()

    async def decay(self, user_id: str | None, *, dry_run: bool = False) -> tuple[int, int]:
        """Demote and delete what was left unused; how many of each. A dry run only counts."""
        owner_id = checked_user(user_id)
        await self._accesses.flush()
        now_ms = self._clock()
        if dry_run:
            return await self._database.read(lambda transaction: preview(transaction, owner_id, now_ms))
        return await self._database.write(lambda transaction: fade(transaction, self._nearest, owner_id, now_ms))

    async def categories(self, user_id: str | None) -> dict[Category, int]:
        """How many entries there are of each category that has any."""
        return await count_categories(self._database, checked_user(user_id), rfc3339(self._clock()))

    async def stated_facts(self, user_id: str) -> Memories:
        """What the user said of themselves: all of `personal_info`, then all of `user_preference`."""
        now = rfc3339(self._clock())

        async def work(transaction: Transaction) -> Memories:
            facts: Memories = []
            for category in sorted(PROTECTED):
                found, _ = await page(transaction, PageWanted(user_id, category, 0, _MOST_OFFSET, 0, now))
                facts += found
            return facts

        return await self._database.read(work)

    def export(self, user_id: str) -> AsyncIterator[dict[str, Any]]:
        """Every row of this user."""
        return export_entries(self._database, user_id)

    async def erase(self, user_id: str) -> None:
        """Delete every row of this user."""

        async def work(transaction: Transaction) -> None:
            owner = await find_owner(transaction, user_id)
            if owner is not None:
                for statement in store.ERASE:
                    await transaction.execute(statement, {"user_no": owner.user_no})

        await self._database.write(work)

    async def _writing(self, transaction: Transaction, entry: StoredEntry) -> Writing:
        owner = await load_owner(transaction, entry.user_no)
        if owner is None:
            raise LookupError(f"entry {entry.entry_key} has no user")
        return Writing(transaction, owner, self._nearest)


async def _find(transaction: Transaction, entry_id: str) -> StoredEntry | None:
    if has_nul_or_surrogate(entry_id):
        return None
    row = await transaction.fetch_one(store.FIND_BY_ID, {"id": entry_id})
    return None if row is None else stored_entry(row[-1], row)


async def _rewrite(writing: Writing, entry: StoredEntry, draft: Draft) -> None:
    memory = draft.memory
    digest = None if memory.content == entry.memory.content else digest_of(memory.content)
    await writing.rewrite(entry, memory, digest, summary_derived=draft.summary_derived)
