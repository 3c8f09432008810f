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

_MOST_READ_AHEAD = 1024


class Absorber(NamedTuple):
    """An entry and how alike it is."""

    entry: StoredEntry
    similarity: Fraction

    @property
    def rank(self) -> tuple[Fraction, int]:
        """The more alike first, of equals the older."""
        return self.similarity, -self.entry.entry_no


async def load_entry(transaction: Transaction, owner: Owner, entry_no: int) -> StoredEntry:
    """An entry of the user, expired or not. `LookupError` where an index names one that is not there."""
    params = {"user_no": owner.user_no, "entry_key": entry_key(owner.user_no, entry_no)}
    row = await transaction.fetch_one(store.ENTRY, params)
    if row is None:
        raise LookupError(f"entry {entry_no} of user {owner.user_no} is indexed and has no row")
    return stored_entry(owner.user_id, row)


def is_live(entry: StoredEntry, now: str) -> bool:
    """Whether anybody may see it."""
    return entry.memory.expires_at is None or entry.memory.expires_at > now


class Matcher:
    """Looks among one user's live entries, inside a write transaction."""

    def __init__(self, transaction: Transaction, owner: Owner, nearest: Nearest, now: str) -> None:
        self._transaction = transaction
        self._owner = owner
        self._nearest = nearest
        self._now = now

    async def absorber(self, content: str, digest: Digest) -> Absorber | None:
        """The oldest entry that holds every sentence; else the most alike at or above the threshold; else None."""
        holder = await self._holder(content, digest)
        if holder is not None:
            return Absorber(holder, Fraction(1))
        # without letters and digits only an equal text is alike, and that one holds every sentence
        return await self._most_alike(digest) if len(digest.bigrams) else None

    async def _most_alike(self, digest: Digest) -> Absorber | None:
        best: Absorber | None = None
        for most, entry_no in await self._nearest.near(self._transaction, self._owner, digest):
            if best is not None and (most, -entry_no) < (float(best.similarity), -best.entry.entry_no):
                break  # nor can any after it be as alike and older
            entry = await load_entry(self._transaction, self._owner, entry_no)
            if is_live(entry, self._now):
                found = Absorber(entry, similarity(digest.bigrams, bigrams(entry.memory.content)))
                if found.similarity >= THRESHOLD and (best is None or found.rank > best.rank):
                    best = found
        return best

    async def _holder(self, content: str, digest: Digest) -> StoredEntry | None:
        user_no = self._owner.user_no
        runs = [_Run(self._transaction, user_no, sentence_hash) for sentence_hash in digest.sentence_hashes]
        entry_no = await _first_in_all(runs, 0)
        while entry_no is not None:
            entry = await load_entry(self._transaction, self._owner, entry_no)
            if is_live(entry, self._now) and _holds(entry, content):
                return entry
            entry_no = await _first_in_all(runs, entry_no + 1)
        return None


def _holds(entry: StoredEntry, content: str) -> bool:
    """Asked of the text itself, for hashes may meet by chance."""
    return set(sentence_keys(entry.memory.content)).issuperset(sentence_keys(content))


class _Run:
    """The entries that hold a sentence, in order, read ahead twice as far each time."""

    def __init__(self, transaction: Transaction, user_no: int, sentence_hash: int) -> None:
        self._transaction = transaction
        self._place = {"user_no": user_no, "sentence_hash": sentence_hash}
        self._read: list[int] = []
        self._limit = 1

    async def seek(self, first: int) -> int | None:
        """The first entry from this number on. Numbers asked for never fall."""
        at = bisect_left(self._read, first)
        if at == len(self._read):
            params = {**self._place, "first": first, "limit": self._limit}
            self._read = [number for (number,) in await self._transaction.fetch(store.SENTENCE_HOLDERS, params)]
            self._limit = min(2 * self._limit, _MOST_READ_AHEAD)
            at = 0
        return self._read[at] if self._read else None


async def _first_in_all(runs: list[_Run], first: int) -> int | None:
    """The first entry, from a number on, that stands in every run: each skips to where the others are."""
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
