"""From a data folder's SQLite file to PostgreSQL: everything, once, whenever it is interrupted.

Each batch of rows is stored together with its digest. A run reads the source from its beginning, skips the batches
that are there and compares their digests, so a source that was written to in between is noticed.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import msgspec

from memory_gateway.kit.clock import Clock, rfc3339
from memory_gateway.storage.moving.columns import Converter, MoveRefused, Table
from memory_gateway.storage.moving.source import Source, open_source
from memory_gateway.storage.moving.target import Begun, Target, open_target
from memory_gateway.storage.port import Row


class Count(NamedTuple):
    """The rows of one table on both sides."""

    table: str
    source: int
    target: int


class Move:
    """A move that may go on; `batches`, then `finish`."""

    def __init__(self, source: Source, target: Target, begun: Begun, converters: dict[str, Converter], clock: Clock):
        self._source = source
        self._target = target
        self._begun = begun
        self._converters = converters
        self._clock = clock

    @property
    def rows(self) -> int:
        """How many the source has."""
        return sum(self._source.counts.values())

    @property
    def finished_at(self) -> str | None:
        """When an earlier run moved all; then there is nothing to do."""
        return self._begun.finished_at

    async def batches(self) -> AsyncIterator[int]:
        """Move what is not there yet; for each batch, how many rows it has. `MoveRefused` for a changed source."""
        for table in self._source.tables:
            there = await self._target.digests(table)
            found = 0
            for batch_no, rows in enumerate(self._source.batches(table)):
                digest = _digest(rows)
                if batch_no >= len(there):
                    convert = self._converters[table.name].converted
                    await self._target.copy(table, batch_no, [convert(row) for row in rows], digest)
                elif digest != there[batch_no]:
                    raise self._changed(table)
                found += 1
                yield len(rows)
            if found < len(there):
                raise self._changed(table)

    async def finish(self) -> list[Count]:
        """Compare the counts, and note the move as finished where all are the same."""
        counts = self._counts(await self._target.count(self._source.tables))
        await self._target.go_on_after(self._source.numbers())
        if all(count.source == count.target for count in counts):
            await self._target.finish(self._source.tables, rfc3339(self._clock()))
        return counts

    async def moved(self) -> list[Count]:
        """Of a finished move: what the source has now, and what was moved; later rows of the target do not count."""
        return self._counts(await self._target.moved())

    def _counts(self, target: dict[str, int]) -> list[Count]:
        return [Count(name, number, target.get(name, 0)) for name, number in self._source.counts.items()]

    def _changed(self, table: Table) -> MoveRefused:
        return MoveRefused(
            f"table {table.name} is not what was moved since {self._begun.begun_at} from {self._begun.source}: "
            "it was written to, or is of another folder; begin again with an empty database"
        )


@asynccontextmanager
async def open_move(path: Path, url: str, clock: Clock) -> AsyncIterator[Move]:
    """Both sides, locked and of this version's schema. `MoveRefused`, in one line, where that cannot be."""
    with open_source(path, clock) as source:
        async with open_target(url, clock) as target:
            converters = {table.name: Converter(table, await target.types(table)) for table in source.tables}
            begun = await target.begin(str(path), source.tables, rfc3339(clock()))
            yield Move(source, target, begun, converters, clock)


def _digest(rows: list[Row]) -> bytes:
    return blake2b(msgspec.msgpack.encode(rows), digest_size=16).digest()
