"""Finding entries by words: every term must stand, as it is, in the content, the summary or a keyword.

A term that few entries hold is answered from the text index and the texts it names; one that many hold, or of which
the index cannot say, by a scan of the user's texts. Both give the same.
"""

from collections.abc import Iterable
from itertools import islice

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from memory_gateway.kit.text import fold
from memory_gateway.memory_service.entries import store
from memory_gateway.memory_service.entries.matching import load_entry
from memory_gateway.memory_service.entries.owners import Owner, chunks_of_keys, entry_key, entry_no_of
from memory_gateway.memory_service.entries.postings import bucket_of, entries_with, grams_of
from memory_gateway.memory_service.entries.schemas import Category, MemoryEntry
from memory_gateway.storage.port import Row, Transaction

MOST_TERMS = 1_000
_SCANNED_AT_ONCE = 2048
_MOST_GRAMS = 12
_FEW_ENTRIES = 128
_LEAST_VERIFIED = 512
_VERIFYING_COST = 6  # reading one text that the index names costs as much as passing over so many
_PATTERN_CHARACTERS = 1000

EntryNos = NDArray[np.uint32]
Match = tuple[int, int, int]
"""Importance, key and hash of the content: in falling order, the best first."""


class Wanted(Struct, frozen=True):
    """Folded terms, and what else an entry must be. ``now`` decides what has expired."""

    terms: tuple[str, ...]
    category: Category | None
    min_importance: int
    now: str


def terms_of(query_text: str) -> tuple[str, ...]:
    """The words of a query, folded, each once, the longest first."""
    return tuple(sorted(dict.fromkeys(fold(query_text).split()), key=len, reverse=True))


async def find_entries(
    transaction: Transaction, owner: Owner, wanted: Wanted, limit: int
) -> tuple[list[MemoryEntry], int]:
    """The most important, of equals the newest, and how many match in all; equal contents count as one entry."""
    candidates = await _indexed_candidates(transaction, owner, wanted.terms)
    if candidates is None:
        matches = await _scanned(transaction, owner, wanted)
    else:
        matches = await _verified(transaction, owner, wanted, candidates)
    shown: dict[int, int] = {}
    for _, key, content_hash in sorted(matches, reverse=True):
        shown.setdefault(content_hash, key)
    found = [await load_entry(transaction, owner, entry_no_of(key)) for key in islice(shown.values(), limit)]
    return [entry.memory for entry in found], len(shown)


async def _indexed_candidates(transaction: Transaction, owner: Owner, terms: tuple[str, ...]) -> EntryNos | None:
    """The indexed entries that may hold all terms; None where these are too many to look at each."""
    most = max(_LEAST_VERIFIED, owner.last_entry_no // _VERIFYING_COST)
    found: EntryNos | None = None
    for gram in await _rarest_first(transaction, owner, terms):
        rows = await transaction.fetch(store.POSTINGS, {"user_no": owner.user_no, "bucket": bucket_of(gram)})
        named = entries_with(gram, (postings for (postings,) in rows))
        found = named if found is None else _common(found, named, owner.last_entry_no)
        if len(found) <= _FEW_ENTRIES:
            break
    return None if found is None or len(found) > most else np.unique(found)


async def _rarest_first(transaction: Transaction, owner: Owner, terms: tuple[str, ...]) -> list[int]:
    """Grams that an entry with all terms must hold, in the order of how much there is to read of each."""
    grams = dict.fromkeys(gram for term in terms for gram in grams_of(term)[:_MOST_GRAMS])
    sizes: dict[int, int] = {}
    for gram in islice(grams, _MOST_GRAMS):
        params = {"user_no": owner.user_no, "bucket": bucket_of(gram)}
        ((sizes[gram],),) = await transaction.fetch(store.POSTINGS_SIZE, params)
    return sorted(sizes, key=sizes.__getitem__)


def _common(some: EntryNos, others: EntryNos, last_entry_no: int) -> EntryNos:
    among_others = np.zeros(last_entry_no + 1, dtype=np.bool_)
    among_others[others] = True
    return some[among_others[some]]


async def _verified(transaction: Transaction, owner: Owner, wanted: Wanted, candidates: EntryNos) -> list[Match]:
    waiting = await transaction.fetch(store.UNINDEXED_CANDIDATES, {"user_no": owner.user_no})
    rows = {row[0]: row for row in waiting}
    keys = [key for key in (entry_key(owner.user_no, int(number)) for number in candidates) if key not in rows]
    for chunk in chunks_of_keys(keys):
        named = await transaction.fetch(store.CANDIDATES, {"user_no": owner.user_no, **chunk})
        rows |= {row[0]: row for row in named}
    return _matching(rows.values(), wanted, wanted.terms)


async def _scanned(transaction: Transaction, owner: Owner, wanted: Wanted) -> list[Match]:
    """The database looks for the longest term, this for the others."""
    longest = wanted.terms[0] if wanted.terms else ""
    left = wanted.terms if len(longest) > _PATTERN_CHARACTERS else wanted.terms[1:]
    statement = store.SCAN_TEXTS if left else store.SCAN
    page = {**owner.keys, "pattern": _pattern(longest[:_PATTERN_CHARACTERS]), "limit": _SCANNED_AT_ONCE}
    matches: list[Match] = []
    while rows := await transaction.fetch(statement, page):
        matches += _matching(rows, wanted, left)
        page["after"] = rows[-1][0]
    return matches


def _pattern(term: str) -> str:
    escaped = term.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def _matching(rows: Iterable[Row], wanted: Wanted, terms: tuple[str, ...]) -> list[Match]:
    return [
        (importance, key, content_hash)
        for key, importance, content_hash, category, expires_at, folded in rows
        if importance >= wanted.min_importance
        and (wanted.category is None or category == wanted.category)
        and (expires_at is None or expires_at > wanted.now)
        and (not terms or all(term in folded for term in terms))
    ]
