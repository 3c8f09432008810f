"""Writing entries: the row, and all that has to change with it in the same transaction."""

from collections import Counter, defaultdict

import numpy as np
from msgspec.structs import replace

from memory_gateway.kit.ids import OwnedIds
from memory_gateway.memory_service.entries import store
from memory_gateway.memory_service.entries.indexing import index_when_due
from memory_gateway.memory_service.entries.nearest import Nearest
from memory_gateway.memory_service.entries.owners import Owner, entry_key, save_owner
from memory_gateway.memory_service.entries.schemas import Category, MemoryEntry
from memory_gateway.memory_service.entries.signatures import RECORDS, level_of, shortened
from memory_gateway.memory_service.entries.stored import Digest, StoredEntry, columns, sentence_hashes
from memory_gateway.storage.port import Transaction


class Writing:
    """What one transaction does to one user's entries. `finish` must be the last call."""

    def __init__(self, transaction: Transaction, owner: Owner, nearest: Nearest) -> None:
        self._transaction = transaction
        self._owner = owner
        self._nearest = nearest
        self._counts: Counter[tuple[Category, int]] = Counter()
        self._lines: defaultdict[int, list[tuple[int, Digest | None]]] = defaultdict(list)

    async def add(self, memory: MemoryEntry, digest: Digest, new_id: OwnedIds, *, summary_derived: bool) -> MemoryEntry:
        """A new entry; it gets the next number, and an id that is free."""
        self._owner.last_entry_no += 1
        entry_no = self._owner.last_entry_no
        key = entry_key(self._owner.user_no, entry_no)
        entry = StoredEntry(memory, key, summary_derived, len(digest.bigrams))
        entry = await self._insert(entry, new_id)
        self._counts[memory.category, memory.importance] += 1
        await self._add_sentences(entry_no, digest.sentence_hashes)
        self._sign(entry_no, 0, digest)
        await self._mark_unindexed(key)
        return entry.memory

    async def rewrite(
        self, old: StoredEntry, memory: MemoryEntry, digest: Digest | None = None, *, summary_derived: bool
    ) -> None:
        """The entry says something else from now on. ``digest`` is of a new content."""
        size = old.bigram_count
        if digest is not None:
            size = len(digest.bigrams)
            await self._change_content(old, digest)
        entry = StoredEntry(memory, old.entry_key, summary_derived, size)
        await self._transaction.execute(store.UPDATE_ENTRY, self._row(entry))
        self._counts[old.memory.category, old.memory.importance] -= 1
        self._counts[memory.category, memory.importance] += 1
        if _said(memory) != _said(old.memory):
            await self._mark_unindexed(old.entry_key)

    async def remove(self, entry: StoredEntry) -> None:
        """The entry is gone."""
        place = self._place(entry.entry_key)
        await self._transaction.execute(store.DELETE_ENTRY, place)
        self._counts[entry.memory.category, entry.memory.importance] -= 1
        await self._drop_sentences(entry.entry_no, sentence_hashes(entry.memory.content))
        self._sign(entry.entry_no, entry.bigram_count, None)
        self._owner.unindexed_count -= await self._transaction.execute(store.UNMARK_UNINDEXED, place)
        self._owner.change_no += 1

    async def demote(self, key: int, now: str) -> None:
        """One level of priority less."""
        self._owner.change_no += 1
        params = {**self._place(key), "now": now, "change_no": self._owner.change_no}
        await self._transaction.execute(store.DEMOTE, params)

    async def finish(self) -> None:
        """Write down what was gathered."""
        for (category, importance), change in self._counts.items():
            if change:
                params = {"category": category, "importance": importance, "change": change}
                await self._transaction.execute(store.COUNT_ENTRIES, {"user_no": self._owner.user_no, **params})
        for level, lines in self._lines.items():
            records = np.zeros(len(lines), dtype=RECORDS[level])
            for record, (entry_no, digest) in zip(records, lines, strict=True):
                record["entry"] = entry_no
                if digest is not None:
                    record["size"], record["signature"] = len(digest.bigrams), shortened(digest.signature, level)
            await self._nearest.append(self._transaction, self._owner, level, records)
        await index_when_due(self._transaction, self._owner)
        await save_owner(self._transaction, self._owner)

    def _row(self, entry: StoredEntry) -> dict[str, object]:
        self._owner.change_no += 1
        return {
            **columns(entry.memory),
            **self._place(entry.entry_key),
            "summary_derived": entry.summary_derived,
            "bigram_count": entry.bigram_count,
            "change_no": self._owner.change_no,
        }

    async def _insert(self, entry: StoredEntry, new_id: OwnedIds) -> StoredEntry:
        while True:
            entry = replace(entry, memory=replace(entry.memory, id=new_id(self._owner.user_no)))
            if await self._transaction.execute(store.INSERT_ENTRY, self._row(entry)):
                return entry

    def _place(self, key: int) -> dict[str, int]:
        return {"user_no": self._owner.user_no, "entry_key": key}

    async def _change_content(self, old: StoredEntry, digest: Digest) -> None:
        before = sentence_hashes(old.memory.content)
        await self._drop_sentences(old.entry_no, before - digest.sentence_hashes)
        await self._add_sentences(old.entry_no, digest.sentence_hashes - before)
        self._sign(old.entry_no, old.bigram_count, digest)

    def _sign(self, entry_no: int, old_size: int, digest: Digest | None) -> None:
        """Enter the signature in its level, and strike the entry out of the level it leaves."""
        size = 0 if digest is None else len(digest.bigrams)
        if old_size and (size == 0 or level_of(size) != level_of(old_size)):
            self._lines[level_of(old_size)].append((entry_no, None))
        if size:
            self._lines[level_of(size)].append((entry_no, digest))

    async def _add_sentences(self, entry_no: int, hashes: frozenset[int]) -> None:
        await self._transaction.execute_many(store.ADD_SENTENCE, self._sentences(entry_no, hashes))

    async def _drop_sentences(self, entry_no: int, hashes: frozenset[int]) -> None:
        await self._transaction.execute_many(store.DROP_SENTENCE, self._sentences(entry_no, hashes))

    def _sentences(self, entry_no: int, hashes: frozenset[int]) -> list[dict[str, int]]:
        user_no = self._owner.user_no
        return [{"user_no": user_no, "sentence_hash": one, "entry_no": entry_no} for one in hashes]

    async def _mark_unindexed(self, key: int) -> None:
        self._owner.unindexed_count += await self._transaction.execute(store.MARK_UNINDEXED, self._place(key))


def _said(memory: MemoryEntry) -> tuple[str, str, list[str]]:
    """What a query looks at."""
    return memory.content, memory.summary, memory.keywords
