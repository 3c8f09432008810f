"""The room's one front: memories of users who never meet."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any

from memory_gateway.kit.clock import Clock, rfc3339
from memory_gateway.kit.errors import InvalidInput, NotFound
from memory_gateway.kit.ids import IdMaker, OwnedIds, owner_no_in
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
    draft_of,
)
from memory_gateway.memory_service.entries.fading import DailyDecay, fade, preview
from memory_gateway.memory_service.entries.listing import PageWanted, all_of, count_categories, export_entries, page
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
from memory_gateway.memory_service.users import check_user_id
from memory_gateway.storage.port import Database, Reads, Transaction

MOST_LISTED = 1000
_FEW = 50  # entries that are read in less time than another thread takes to begin
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
        self._new_entry_id = OwnedIds(clock)
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
        draft = draft_of(new)
        content = draft.memory.content
        digest = digest_of(content) if len(content) <= _SHORT else await asyncio.to_thread(digest_of, content)

        async def work(transaction: Transaction) -> Saved:
            now = rfc3339(self._clock())
            memory = begun(draft.memory, now)
            owner = await open_owner(transaction, memory.user_id)
            writing = Writing(transaction, owner, self._nearest)
            found = await Matcher(transaction, owner, self._nearest, now).absorber(content, digest)
            if found is None:
                derived = draft.summary_derived
                memory = await writing.add(memory, digest, self._new_entry_id, summary_derived=derived)
            else:
                memory = absorbed(found.entry.memory, memory)
                await _rewrite(writing, found.entry, Draft(memory, found.entry.summary_derived))
            await writing.finish()
            return Saved(memory, found is not None, None if found is None else float(found.similarity))

        return await self._database.write(work, owner=draft.memory.user_id)

    async def get(self, entry_id: str) -> MemoryEntry:
        """A live entry, or `NotFound`. The access is counted afterwards."""
        entry = await _find(self._database, entry_id)
        if entry is None or not is_live(entry, rfc3339(self._clock())):
            raise NotFound("记忆不存在")
        self._accesses.count(entry.memory.user_id, entry.entry_key)
        return entry.memory

    async def update(self, entry_id: str, changes: EntryChanges) -> None:
        """Change what is given. `NotFound`, or `InvalidInput` naming a field that breaks its rule."""
        check_changes(changes)
        known = await _find(self._database, entry_id)
        if known is None:
            raise NotFound("记忆不存在")

        async def work(transaction: Transaction) -> None:
            now = rfc3339(self._clock())
            entry = await _find(transaction, entry_id)
            if entry is None or not is_live(entry, now):
                raise NotFound("记忆不存在")
            writing = await self._writing(transaction, entry)
            await _rewrite(writing, entry, changed(Draft(entry.memory, entry.summary_derived), changes, now))
            await writing.finish()

        await self._database.write(work, owner=known.memory.user_id)

    async def delete(self, entry_id: str) -> None:
        """The entry is gone afterwards, whether or not it was there."""
        known = await _find(self._database, entry_id)
        if known is None:
            return

        async def work(transaction: Transaction) -> None:
            entry = await _find(transaction, entry_id)
            if entry is not None:
                writing = await self._writing(transaction, entry)
                await writing.remove(entry)
                await writing.finish()

        await self._database.write(work, owner=known.memory.user_id)

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
            check_user_id(user_id),
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
        user_id, query_text = check_user_id(query.user_id), query.query_text or ""
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
        owner_id = check_user_id(user_id)
        await self._accesses.flush()
        return await Consolidation(self._database, self._nearest, owner_id, rfc3339(self._clock())).run()

    async def decay(self, user_id: str | None, *, dry_run: bool = False) -> tuple[int, int]:
        """Demote and delete what was left unused; how many of each. A dry run only counts."""
        owner_id = check_user_id(user_id)
        await self._accesses.flush()
        now_ms = self._clock()
        if dry_run:
            return await self._database.read(lambda transaction: preview(transaction, owner_id, now_ms))
        return await self._database.write(
            lambda transaction: fade(transaction, self._nearest, owner_id, now_ms), owner=owner_id
        )

    async def categories(self, user_id: str | None) -> dict[Category, int]:
        """How many entries there are of each category that has any."""
        return await count_categories(self._database, check_user_id(user_id), rfc3339(self._clock()))

    async def stated_facts(self, user_id: str) -> Memories:
        """What the user said of themselves: all of `personal_info`, then all of `user_preference`."""
        now = rfc3339(self._clock())
        counts = await count_categories(self._database, user_id, now)
        categories = [category for category in sorted(PROTECTED) if counts.get(category)]

        def work(transaction: Transaction) -> Awaitable[Memories]:
            return all_of(transaction, user_id, categories, now)

        if not categories:
            return []
        few = sum(counts[category] for category in categories) <= _FEW
        return await (self._database.read_short(work) if few else self._database.read(work))

    def export(self, user_id: str) -> AsyncIterator[dict[str, Any]]:
        """Every row of this user."""
        return export_entries(self._database, user_id)

    async def erase(self, user_id: str) -> None:
        """Delete every row of this user."""

        async def work(transaction: Transaction) -> None:
            owner = await find_owner(transaction, user_id)
            if owner is not None:
                for statement in store.ERASE:
                    await transaction.execute(statement, {"user_no": owner.user_no, "user_id": user_id})

        await self._database.write(work, owner=user_id)

    async def _writing(self, transaction: Transaction, entry: StoredEntry) -> Writing:
        owner = await load_owner(transaction, entry.user_no)
        if owner is None:
            raise LookupError(f"entry {entry.entry_key} has no user")
        return Writing(transaction, owner, self._nearest)


async def _find(reads: Reads, entry_id: str) -> StoredEntry | None:
    if has_nul_or_surrogate(entry_id):
        return None
    user_no = owner_no_in(entry_id)
    if user_no is None:  # of an entry that is older than ids which say whose they are
        row = await reads.fetch_one(store.FIND_BY_ID_ALONE, {"id": entry_id})
    else:
        row = await reads.fetch_one(store.FIND_BY_ID, {"id": entry_id, "user_no": user_no})
    return None if row is None else stored_entry(row[-1], row)


async def _rewrite(writing: Writing, entry: StoredEntry, draft: Draft) -> None:
    memory = draft.memory
    digest = None if memory.content == entry.memory.content else digest_of(memory.content)
    await writing.rewrite(entry, memory, digest, summary_derived=draft.summary_derived)
