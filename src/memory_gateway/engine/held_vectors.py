"""Vectors as small integers, kept in memory between searches.

A vector is stored as bytes of -127..127, scaled so that its largest component fits; its direction is what counts. Dot
products of such numbers are whole and, for vectors of real models, small enough for a float to hold exactly. So a
cosine does not depend on how many vectors are multiplied at once: the same data give the same ranking, filtered or not.

Vectors of a set are only ever appended, and the number of a set is never given again in its space. So what is held of
it stays right; what is missing is read.
"""

from typing import NamedTuple

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


class NamedModel(NamedTuple):
    """A model as an embedder names it."""

    name: str
    dimensions: int


def named_model(stored: str) -> NamedModel | None:
    """Whose vectors a space remembers; None where they are in a form of an older version."""
    if not stored.endswith(f" {_FORM}"):
        return None
    name, _, dimensions = stored.removesuffix(f" {_FORM}").rpartition(" ")
    return NamedModel(name, int(dimensions))


class Served(Struct, frozen=True):
    """The set of vectors that a space is searched by: of its first ``count`` turns."""

    model: str
    count: int
    set_no: int


async def served_set(transaction: Transaction, space_no: int) -> Served | None:
    """None while no turn has a vector."""
    row = await transaction.fetch_one(store.SERVING_SET, {"space_no": space_no})
    return Served(*row) if row is not None and row[1] else None


async def first_vector(transaction: Transaction, space_no: int, served: Served) -> Int8Rows:
    """As it is stored."""
    place = {"space_no": space_no, "set_no": served.set_no, "first_block": 0}
    ((block,), *_) = await transaction.fetch(store.VECTORS_FROM, place)
    named = named_model(served.model)
    return np.frombuffer(block, dtype=np.int8)[: named.dimensions if named else None]


class _Block(Struct, frozen=True):
    """Vectors of up to `BLOCK_TURNS` neighbouring turns and their lengths."""

    rows: Int8Rows
    lengths: NDArray[np.float64]


class _Set(Struct, frozen=True):
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
        self._sets = LastUsed[_Set](most_bytes)

    async def cosines(
        self, transaction: Transaction, space_no: int, served: Served | None, query: Vector, turns: int
    ) -> Scores:
        """The cosine of the query and each of the space's ``turns``; NaN for those without a vector in the set.

        ``query`` is a vector of the set's model.
        """
        cosines = np.full(turns, np.nan)
        if served is None:
            return cosines
        known = min(served.count, turns)
        held = await self._set(transaction, space_no, served.set_no, known, len(query))
        wanted = as_bytes(query).astype(np.float32)
        length = float(np.sqrt(np.square(wanted, dtype=np.float64).sum())) or 1.0
        for number, block in enumerate(held.blocks):
            first = number * BLOCK_TURNS
            end = min(first + len(block.rows), known)
            if first < end:
                dots = block.rows[: end - first].astype(np.float32) @ wanted
                cosines[first:end] = dots / (block.lengths[: end - first] * length)
        return cosines

    def forget(self, space_nos: list[int]) -> None:
        """These were erased."""
        self._sets.forget(space_nos)

    async def _set(self, transaction: Transaction, space_no: int, set_no: int, known: int, dimensions: int) -> _Set:
        held, era = self._sets.get(space_no, set_no)
        if held is None:
            held = _Set([])
        if held.count < known:
            whole = held.count // BLOCK_TURNS
            place = {"space_no": space_no, "set_no": set_no, "first_block": whole}
            rows = await transaction.fetch(store.VECTORS_FROM, place)
            held = _Set([*held.blocks[:whole], *(_block(vectors, dimensions) for (vectors,) in rows)])
            self._sets.keep(space_no, held, era, set_no)
        return held


def _block(vectors: bytes, dimensions: int) -> _Block:
    rows = np.frombuffer(vectors, dtype=np.int8).reshape(-1, dimensions)
    lengths = np.sqrt(np.square(rows, dtype=np.float64).sum(axis=1))
    return _Block(rows, np.where(lengths > 0, lengths, 1.0))
