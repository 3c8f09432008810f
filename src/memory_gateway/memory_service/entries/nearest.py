"""A user's signatures, kept in memory and proved against the database before every use.

They lie in the database as a log, one for each level, in chunks. Whoever writes to one of a user's logs leaves a new
stamp with the user. A table that was right at the stamp found there is right now. Else others have written, or what was
written here was rolled back: a table has read the log up to some line, and knows that line's stamp; where the log still
has it there, everything before is what the table holds, and only what follows is read.
"""

import secrets
from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from memory_gateway.memory_service.entries import store
from memory_gateway.memory_service.entries.owners import Owner
from memory_gateway.memory_service.entries.signatures import (
    RECORDS,
    Near,
    Records,
    Table,
    levels_near,
    shortened,
)
from memory_gateway.memory_service.entries.stored import Digest
from memory_gateway.storage.port import Row, Transaction

MOST_BYTES = 256 << 20
_CHUNK_BYTES = 8192
_LEAST_GARBAGE = 512


class _Held(Struct):
    """A table and how far it has read: the chunk, the bytes of it, and the stamp of the last line.

    ``users_stamp``: the user's when the table was last known to be right.
    """

    table: Table
    level: int
    users_stamp: int | None = None
    lines: int = 0
    chunk_no: int = -1
    length: int = 0
    stamp: int = 0
    counted_bytes: int = 0

    def is_continued_by(self, rows: list[Row]) -> bool:
        """Whether these chunks, from the last one read on, begin with what was read."""
        if self.lines == 0:
            return True
        if not rows or rows[0][0] != self.chunk_no or len(rows[0][1]) < self.length:
            return False
        return int(self._lines(rows[0][1][: self.length])[-1]["stamp"]) == self.stamp

    def read_on(self, rows: list[Row]) -> None:
        if not rows:
            return
        fresh = self._lines(b"".join(records for _, records in rows)[self.length :])
        if len(fresh):
            self.take_in(fresh, rows[-1][0], len(rows[-1][1]))

    def take_in(self, fresh: Records, chunk_no: int, length: int) -> None:
        """Lines that follow what was read, and where they end."""
        self.table.apply(fresh)
        self.lines += len(fresh)
        self.stamp = int(fresh[-1]["stamp"])
        self.chunk_no, self.length = chunk_no, length

    @property
    def is_worn(self) -> bool:
        """Whether most of the log is out of date."""
        return self.lines > _LEAST_GARBAGE + 2 * len(self.table)

    def _lines(self, chunk: bytes) -> Records:
        return np.frombuffer(chunk, dtype=RECORDS[self.level])


class Nearest:
    """For each user, tables of the levels last asked for, the longest unused dropped where memory is short.

    All of it runs inside write transactions, one at a time.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._tables: dict[tuple[int, int], _Held] = {}

    async def near(self, transaction: Transaction, owner: Owner, digest: Digest) -> list[Near]:
        """Every entry of the user that may be alike, the most promising first."""
        found: list[Near] = []
        size = len(digest.bigrams)
        for level in levels_near(size):
            held = await self._held(transaction, owner, level)
            found += held.table.near(size, shortened(digest.signature, level))
        return sorted(found, key=lambda near: (-near.most, near.entry_no))

    async def append(self, transaction: Transaction, owner: Owner, level: int, records: Records) -> None:
        """Write lines to the log, which is made anew where most of it is out of date. The owner gets a new stamp."""
        place = {"user_no": owner.user_no, "level": level}
        held = await self._held(transaction, owner, level)
        if held.is_worn:
            records = np.concatenate([held.table.records(), records])
            held = _Held(Table(level), level, owner.signature_stamp, chunk_no=held.chunk_no + 1)
            await transaction.execute(store.DROP_SIGNATURES, {**place, "first": held.chunk_no})
        records["stamp"] = np.frombuffer(secrets.token_bytes(8 * len(records)), dtype="<u8")
        chunks = list(_chunks(records, max(held.chunk_no, 0), held.length))
        for chunk_no, _, lines in chunks:
            await transaction.execute(store.APPEND_SIGNATURES, {**place, "chunk_no": chunk_no, "records": lines})
        last, length, _ = chunks[-1]
        held.take_in(records, last, length)
        self._keep(owner, held)
        self._stamp(owner)

    def _stamp(self, owner: Owner) -> None:
        """Tables that were right before a write of ours are right after it."""
        stamp = int.from_bytes(secrets.token_bytes(8), signed=True)
        for level in range(len(RECORDS)):
            held = self._tables.get((owner.user_no, level))
            if held is not None and held.users_stamp == owner.signature_stamp:
                held.users_stamp = stamp
        owner.signature_stamp = stamp

    async def _held(self, transaction: Transaction, owner: Owner, level: int) -> _Held:
        """The table as of this moment of the transaction."""
        held = self._tables.get((owner.user_no, level)) or _Held(Table(level), level)
        if held.users_stamp != owner.signature_stamp:
            held = await _brought_up_to_date(transaction, owner, held)
        self._keep(owner, held)
        return held

    def _keep(self, owner: Owner, held: _Held) -> None:
        key = (owner.user_no, held.level)
        if (before := self._tables.pop(key, None)) is not None:
            self._bytes -= before.counted_bytes
        held.counted_bytes = held.table.bytes_held
        self._tables[key] = held
        self._bytes += held.counted_bytes
        while self._bytes > self._most_bytes:
            oldest = next(iter(self._tables))
            self._bytes -= self._tables.pop(oldest).counted_bytes


async def _brought_up_to_date(transaction: Transaction, owner: Owner, held: _Held) -> _Held:
    place = {"user_no": owner.user_no, "level": held.level}
    rows = await transaction.fetch(store.SIGNATURES, {**place, "first": held.chunk_no})
    if not held.is_continued_by(rows):
        held = _Held(Table(held.level), held.level)
        rows = await transaction.fetch(store.SIGNATURES, {**place, "first": held.chunk_no})
    held.read_on(rows)
    held.users_stamp = owner.signature_stamp
    return held


def _chunks(records: Records, chunk_no: int, length: int) -> Iterator[tuple[int, int, bytes]]:
    """The lines on as many chunks as they need, the first of them filled up to ``length`` bytes already.

    Each with its number and how many bytes it then holds.
    """
    lines = max(1, _CHUNK_BYTES // records.itemsize)
    start, end = 0, max(0, lines - length // records.itemsize)
    while start < len(records):
        if start < end:
            packed = records[start:end].tobytes()
            yield chunk_no, length + len(packed), packed
        chunk_no, length, start, end = chunk_no + 1, 0, end, end + lines
