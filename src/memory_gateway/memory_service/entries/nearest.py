"""A user's signatures, kept in memory and proved against the database before every use.

They lie in the database as a log, one for each level, in chunks. A table in memory has read the log up to some line,
and knows that line's stamp. Where the log still has it there, everything before is what the table holds, whoever wrote
it, and only what follows is read: the writes of other processes, and of this one.
"""

import secrets
from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from memory_gateway.memory_service.entries import store
from memory_gateway.memory_service.entries.signatures import (
    RECORDS,
    Near,
    Records,
    Table,
    levels_near,
    signature_of,
)
from memory_gateway.memory_service.entries.similarity import Bigrams
from memory_gateway.storage.port import Row, Transaction

MOST_BYTES = 256 << 20
_CHUNK_BYTES = 8192
_LEAST_GARBAGE = 512


class _Held(Struct):
    """A table and how far it has read: the chunk, the bytes of it, and the stamp of the last line."""

    table: Table
    level: int
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
            self.table.apply(fresh)
            self.lines += len(fresh)
            self.stamp = int(fresh[-1]["stamp"])
        self.chunk_no, self.length = rows[-1][0], len(rows[-1][1])

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

    async def near(self, transaction: Transaction, user_no: int, pairs: Bigrams) -> list[Near]:
        """Every entry of the user that may be alike, the most promising first."""
        found: list[Near] = []
        for level in levels_near(len(pairs)):
            held = await self._held(transaction, user_no, level)
            found += held.table.near(len(pairs), signature_of(pairs, level))
        return sorted(found, key=lambda near: (-near.most, near.entry_no))

    async def append(self, transaction: Transaction, user_no: int, level: int, records: Records) -> None:
        """Write lines to the log, which is made anew where most of it is out of date."""
        place = {"user_no": user_no, "level": level}
        row = await transaction.fetch_one(store.LAST_SIGNATURES, place)
        chunk_no, length = (0, 0) if row is None else row
        if self._is_worn(user_no, level):
            held = await self._held(transaction, user_no, level)
            records = np.concatenate([held.table.records(), records])
            chunk_no, length = chunk_no + 1, 0
            await transaction.execute(store.DROP_SIGNATURES, {**place, "first": chunk_no})
        records["stamp"] = np.frombuffer(secrets.token_bytes(8 * len(records)), dtype="<u8")
        await transaction.execute_many(
            store.APPEND_SIGNATURES,
            ({**place, "chunk_no": number, "records": lines} for number, lines in _chunks(records, chunk_no, length)),
        )

    def _is_worn(self, user_no: int, level: int) -> bool:
        held = self._tables.get((user_no, level))
        return held is not None and held.lines > _LEAST_GARBAGE + 2 * len(held.table)

    async def _held(self, transaction: Transaction, user_no: int, level: int) -> _Held:
        """The table as of this moment of the transaction."""
        place = {"user_no": user_no, "level": level}
        held = self._tables.pop((user_no, level), None) or _Held(Table(level), level)
        self._bytes -= held.counted_bytes
        rows = await transaction.fetch(store.SIGNATURES, {**place, "first": held.chunk_no})
        if not held.is_continued_by(rows):
            held = _Held(Table(level), level)
            rows = await transaction.fetch(store.SIGNATURES, {**place, "first": held.chunk_no})
        held.read_on(rows)
        self._keep(user_no, held)
        return held

    def _keep(self, user_no: int, held: _Held) -> None:
        held.counted_bytes = held.table.bytes_held
        self._tables[user_no, held.level] = held
        self._bytes += held.counted_bytes
        while self._bytes > self._most_bytes:
            oldest = next(iter(self._tables))
            self._bytes -= self._tables.pop(oldest).counted_bytes


def _chunks(records: Records, chunk_no: int, length: int) -> Iterator[tuple[int, bytes]]:
    """The lines on as many chunks as they need, the first of them filled up to ``length`` bytes already."""
    lines = max(1, _CHUNK_BYTES // records.itemsize)
    start, end = 0, max(0, lines - length // records.itemsize)
    while start < len(records):
        if start < end:
            yield chunk_no, records[start:end].tobytes()
        chunk_no, start, end = chunk_no + 1, end, end + lines
