"""Bringing entries into the text index, a segment at a time."""

from memory_gateway.memory_service.entries import store
from memory_gateway.memory_service.entries.owners import Owner, entry_no_of
from memory_gateway.memory_service.entries.postings import SEGMENT_ENTRIES, SEGMENTS_IN_BLOCK, packed
from memory_gateway.storage.port import Row, Transaction

_MOST_GARBAGE = 4 * SEGMENT_ENTRIES


async def index_when_due(transaction: Transaction, owner: Owner) -> None:
    """Index what waits once it fills a segment; index everything anew where most of the index is out of date."""
    if owner.unindexed_count < SEGMENT_ENTRIES:
        return
    rows = await transaction.fetch(store.COUNTS, {"user_no": owner.user_no, "min_importance": 0})
    live = sum(entries for _, entries in rows)
    if owner.indexed_count + owner.unindexed_count > 2 * live + _MOST_GARBAGE:
        await _index_all(transaction, owner)
    else:
        waiting = await transaction.fetch(store.UNINDEXED_TEXTS, {"user_no": owner.user_no})
        await _index(transaction, owner, waiting)
    await transaction.execute(store.UNMARK_ALL_UNINDEXED, {"user_no": owner.user_no})
    owner.unindexed_count = 0


async def _index_all(transaction: Transaction, owner: Owner) -> None:
    await transaction.execute(store.DROP_POSTINGS, {"user_no": owner.user_no})
    owner.indexed_count = owner.segment_count = 0
    page = {**owner.keys, "limit": SEGMENT_ENTRIES}
    while rows := await transaction.fetch(store.TEXTS, page):
        await _index(transaction, owner, rows)
        page["after"] = rows[-1][0]


async def _index(transaction: Transaction, owner: Owner, rows: list[Row]) -> None:
    """One more segment, of these keys and texts."""
    entry_nos = [entry_no_of(key) for key, _ in rows]
    place = {"user_no": owner.user_no, "block_no": owner.segment_count // SEGMENTS_IN_BLOCK}
    buckets = packed(entry_nos, [text for _, text in rows])
    await transaction.execute_many(
        store.APPEND_POSTINGS, ({**place, "bucket": bucket, "postings": postings} for bucket, postings in buckets)
    )
    owner.segment_count += 1
    owner.indexed_count += len(rows)
