"""Which entry absorbs a new text: the decision that a comparison with every entry of the user would give."""

from bisect import bisect_left
from fractions import Fraction
from typing import NamedTuple

from memory_gateway.memory_service.entries import store
from memory_gateway.memory_service.entries.nearest import Nearest
from memory_gateway.memory_service.entries.owners import Owner, entry_key
from memory_gateway.memory_service.entries.sentences import sentence_keys
from memory_gateway.memory_service.entries.similarity import THRESHOLD, bigrams, similarity
from memory_gateway.memory_service.entries.stored import Digest, StoredEntry, stored_entry
from memory_gateway.storage.port import Transaction

_MOST_HOLDERS = 1024


class Absorber(NamedTuple):
    """An entry and how alike it is."""

    entry: StoredEntry
    similarity: Fraction


async def find_absorber(
    transaction: Transaction, owner: Owner, digest: Digest, now: str, nearest: Nearest
) -> Absorber | None:
    """The oldest live entry that holds every sentence; else the most alike at or above the threshold, the oldest of
    equals; else None."""
    holder = await _holder(transaction, owner, digest, now)
    if holder is not None:
        return Absorber(holder, Fraction(1))
    return await _most_alike(transaction, owner, digest, now, nearest)


async def load_entry(transaction: Transaction, owner: Owner, entry_no: int) -> StoredEntry | None:
    """An entry of the user, expired or not."""
    params = {"user_no": owner.user_no, "entry_key": entry_key(owner.user_no, entry_no)}
    row = await transaction.fetch_one(store.ENTRY, params)
    return None if row is None else stored_entry(owner.user_id, row)


def is_live(entry: StoredEntry, now: str) -> bool:
    """Whether anybody may see it."""
    return entry.memory.expires_at is None or entry.memory.expires_at > now


async def _most_alike(
    transaction: Transaction, owner: Owner, digest: Digest, now: str, nearest: Nearest
) -> Absorber | None:
    if digest.shape is None:
        return None  # without letters and digits only an equal text is alike, and that one holds every sentence
    best: Absorber | None = None
    for most, entry_no in await nearest.near(transaction, owner.user_no, digest.shape):
        if best is not None and most < float(best.similarity):
            break
        entry = await load_entry(transaction, owner, entry_no)
        if entry is None or not is_live(entry, now):
            continue
        found = Absorber(entry, similarity(digest.bigrams, bigrams(entry.memory.content)))
        if found.similarity >= THRESHOLD and (best is None or _is_better(found, best)):
            best = found
    return best


def _is_better(found: Absorber, best: Absorber) -> bool:
    return (found.similarity, -found.entry.entry_no) > (best.similarity, -best.entry.entry_no)


class _Run:
    """The entries that hold a sentence, in order, read ahead twice as far each time."""

    def __init__(self, transaction: Transaction, user_no: int, sentence_hash: int) -> None:
        self._transaction = transaction
        self._place = {"user_no": user_no, "sentence_hash": sentence_hash}
        self._read: list[int] = []
        self._limit = 1

    async def seek(self, first: int) -> int | None:
        """The first entry from this number on."""
        at = bisect_left(self._read, first)
        if at == len(self._read):
            params = {**self._place, "first": first, "limit": self._limit}
            self._read = [number for (number,) in await self._transaction.fetch(store.SENTENCE_HOLDERS, params)]
            self._limit = min(2 * self._limit, _MOST_HOLDERS)
            at = 0
        return self._read[at] if self._read else None


async def _holder(transaction: Transaction, owner: Owner, digest: Digest, now: str) -> StoredEntry | None:
    runs = [_Run(transaction, owner.user_no, sentence_hash) for sentence_hash in digest.sentence_hashes]
    found = await _first_in_all(runs, 0)
    while found is not None:
        entry = await load_entry(transaction, owner, found)
        if entry is not None and is_live(entry, now) and _holds(entry, digest):
            return entry
        found = await _first_in_all(runs, found + 1)
    return None


def _holds(entry: StoredEntry, digest: Digest) -> bool:
    """Asked of the text itself, for hashes may meet by chance."""
    return set(sentence_keys(entry.memory.content)).issuperset(digest.sentence_keys)


async def _first_in_all(runs: list[_Run], first: int) -> int | None:
    """The first entry, from a number on, that stands in every run. Each run skips to where the others are."""
    agreed = 0
    while agreed < len(runs):
        for run in runs:
            found = await run.seek(first)
            if found is None:
                return None
            agreed = agreed + 1 if found == first else 1
            first = found
            if agreed == len(runs):
                break
    return first
