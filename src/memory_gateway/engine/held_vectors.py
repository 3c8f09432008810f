"""Vectors as small integers, kept in memory between searches.

A vector is stored as bytes of -127..127, scaled so that its largest component fits; its direction is what counts. Dot
products of such numbers are whole and, for vectors of real models, small enough for a float to hold exactly. So a
cosine does not depend on how many vectors are multiplied at once: the same data give the same ranking, filtered or not.

Vectors of a space are only ever appended, so what is held of a space stays right; what is missing is read.
"""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from memory_gateway.engine import store
from memory_gateway.engine.columns import BLOCK_TURNS, Scores
from memory_gateway.engine.last_used import LastUsed
from memory_gateway.storage.port import Transaction

MOST_BYTES = 128 << 20
_LARGEST = 127
_FORM = "int8, windows of a segment"

Int8Rows = NDArray[np.int8]
Vector = NDArray[np.float32]


def as_bytes(vectors: NDArray[np.float32]) -> Int8Rows:
    """Each row scaled to -127..127. A row of zeros stays one."""
    largest = np.abs(vectors).max(axis=-1, keepdims=True)
    scaled = vectors * (_LARGEST / np.where(largest > 0, largest, 1.0))
    return np.asarray(np.rint(scaled), dtype=np.int8)


def stored_model(model: str, dimensions: int) -> str:
    """What a space remembers of its vectors: they are of no use to another model, nor in another form."""
    return f"{model} {dimensions} {_FORM}"


class _Block(Struct, frozen=True):
    """Vectors of up to `BLOCK_TURNS` neighbouring turns and their lengths."""

    rows: Int8Rows
    lengths: NDArray[np.float64]


class _Space(Struct, frozen=True):
    model: str
    blocks: list[_Block]

    @property
    def count(self) -> int:
        return sum(len(block.rows) for block in self.blocks)

    @property
    def size(self) -> int:
        return sum(block.rows.nbytes + block.lengths.nbytes for block in self.blocks)


class HeldVectors:
    """For the spaces last searched. Several threads may ask at once; each brings the transaction it reads in."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._spaces = LastUsed[_Space](most_bytes)

    async def cosines(self, transaction: Transaction, space_no: int, model: str, query: Vector, turns: int) -> Scores:
        """The cosine of the query and each of the space's ``turns``; NaN for those without a vector of this model."""
        cosines = np.full(turns, np.nan)
        row = await transaction.fetch_one(store.EMBEDDED, {"space_no": space_no})
        if row is None or row[0] != stored_model(model, len(query)):
            return cosines
        known = min(int(row[1]), turns)
        space = await self._space(transaction, space_no, model, known, len(query))
        wanted = as_bytes(query).astype(np.float32)
        length = float(np.sqrt(np.square(wanted, dtype=np.float64).sum())) or 1.0
        for number, block in enumerate(space.blocks):
            first = number * BLOCK_TURNS
            end = min(first + len(block.rows), known)
            if first < end:
                dots = block.rows[: end - first].astype(np.float32) @ wanted
                cosines[first:end] = dots / (block.lengths[: end - first] * length)
        return cosines

    def forget(self, space_nos: list[int]) -> None:
        """These were erased."""
        self._spaces.forget(space_nos)

    async def _space(self, transaction: Transaction, space_no: int, model: str, known: int, dimensions: int) -> _Space:
        held, era = self._spaces.get(space_no)
        if held is None or held.model != model:
            held = _Space(model, [])
        if held.count < known:
            whole = held.count // BLOCK_TURNS
            place = {"space_no": space_no, "first_block": whole}
            rows = await transaction.fetch(store.VECTORS_FROM, place)
            held = _Space(model, [*held.blocks[:whole], *(_block(vectors, dimensions) for (vectors,) in rows)])
            self._spaces.keep(space_no, held, era)
        return held


def _block(vectors: bytes, dimensions: int) -> _Block:
    rows = np.frombuffer(vectors, dtype=np.int8).reshape(-1, dimensions)
    lengths = np.sqrt(np.square(rows, dtype=np.float64).sum(axis=1))
    return _Block(rows, np.where(lengths > 0, lengths, 1.0))
