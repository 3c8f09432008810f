"""A user's signatures, kept in memory and proved against the database before every use.

They lie in the database as a log, one for each level, in chunks. A table in memory has read the log up to some line,
and knows that line's stamp. Where the log still has it there, everything before is what the table holds, whoever wrote
it, and only what follows is read: the writes of other processes, and of this one.
"""

from msgspec import Struct
import numpy as np

from memory_gateway.memory_service.entries import store
from memory_gateway.memory_service.entries.signatures import (
    LEVEL_BITS,
    RECORDS,
    Near,
    Records,
    Shape,
    Table,
    levels_near,
)
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

    async def near(self, transaction: Transaction, user_no: int, shape: Shape) -> list[Near]:
        """Every entry of the user that may be alike, the most promising first."""
        found: list[Near] = []
        for level in levels_near(shape.size):
            held = await self._held(transaction, user_no, level)
            found += held.table.near(shape.size, shape.signature(level))
        return sorted(found, key=lambda near: (-near.most, near.entry_no))

    async def append(self, transaction: Transaction, user_no: int, level: int, records: Records) -> None:
        """Write lines to the log, which is written anew where most of it is out of date."""
        held = self._tables.get((user_no, level))
        if held is not None and held.lines > _LEAST_GARBAGE + 2 * len(held.table):
            held = await self._held(transaction, user_no, level)
            first = await self._next_chunk(transaction, user_no, level)
            await self._write(transaction, user_no, level, first, held.table.records())
            params = {"user_no": user_no, "level": level, "first": first}
            await transaction.execute(store.DROP_SIGNATURES, params)
        await self._append(transaction, user_no, level, records)
