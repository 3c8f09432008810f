"""Bigram sets as bit signatures, so that one pass over a few arrays leaves only texts that may be alike.

Bit i of a signature is the parity of how many bigrams hash to i. So the signatures of two sets differ in at most as
many bits as there are bigrams in only one of them, and sets A and B with a Jaccard coefficient of at least 3/4 have

    3/4 |A| <= |B| <= 4/3 |A|    and    |A△B| <= (|A| + |B|) / 7.

What breaks a bound cannot be alike; what keeps all of them is verified by its text. Larger sets have longer signatures,
for a short one fills up and tells nothing. Folding a signature (xor of its parts) gives the signature of an eighth of
the length: a first pass over that drops nearly everything.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory_gateway.memory_service.entries.similarity import Bigrams

Words = NDArray[np.uint64]
Counts = NDArray[np.uint32]
Records = NDArray[np.void]

_LARGEST = (64, 128, 256)  # bigrams in a set of each level but the last
LEVEL_BITS = (512, 1024, 2048, 4096)
_FOLDS = 8
_FIRST_ROWS = 64
_FEW = 64
_ONE_PASS_ROWS = 4096  # so few are sooner compared all than looked up by size
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio, odd
_HASH_SHIFT = np.uint64(64 - 12)  # the upper 12 bits: enough for the longest signature

RECORDS = tuple(
    np.dtype([("entry", "<u4"), ("size", "<u4"), ("stamp", "<u8"), ("signature", "<u8", (bits // 64,))])
    for bits in LEVEL_BITS
)
"""A line of the log of each level. Size 0: the entry has left the level. No two stamps are equal."""


def signature_of(pairs: Bigrams, level: int) -> Words:
    """Comparable with every signature of that level."""
    positions = (pairs * _SPREAD >> _HASH_SHIFT).astype(np.int64) % LEVEL_BITS[level]
    parities = np.bincount(positions, minlength=LEVEL_BITS[level]) & 1
    return np.packbits(parities.astype(np.uint8), bitorder="little").view("<u8")


def widest_signature(pairs: Bigrams) -> Words:
    """From which `shortened` makes the signature of every level that a search or an entry of this size needs."""
    return signature_of(pairs, max(levels_near(len(pairs))))


def shortened(signature: Words, level: int) -> Words:
    """The signature at a level not above its own: positions are taken modulo the length, so its parts add up."""
    return _xored(signature, len(signature) * 64 // LEVEL_BITS[level])


def level_of(size: int) -> int:
    """The level of sets of this size."""
    return sum(size > largest for largest in _LARGEST)


def levels_near(size: int) -> Iterator[int]:
    """The levels in which sets of about this size lie."""
    smallest, largest = _window(size)
    yield from range(level_of(smallest), level_of(largest) + 1)


def _window(size: int) -> tuple[int, int]:
    return -(-3 * size // 4), 4 * size // 3


class Near(NamedTuple):
    """An entry that may be alike: ``most`` is a bound of its similarity, never below it."""

    most: float
    entry_no: int


class Table:
    """The signatures of one level of one user. Rows are only ever added and struck out.

    The first ``_ordered`` rows are in order of size, so that a search reads only those of a fitting size, and the rest.
    """

    def __init__(self, level: int) -> None:
        self._level = level
        self._count = 0
        self._ordered = 0
        self._newest = 0
        self._live = 0
        self._allocate(_FIRST_ROWS)

    def __len__(self) -> int:
        return self._live

    def _allocate(self, rows: int) -> None:
        words = LEVEL_BITS[self._level] // 64
        self._entries = np.zeros(rows, dtype=np.uint32)
        self._sizes = np.zeros(rows, dtype=np.uint32)
        self._folded = np.zeros((rows, words // _FOLDS), dtype=np.uint64)
        self._signatures = np.zeros((rows, words), dtype=np.uint64)

    @property
    def bytes_held(self) -> int:
        arrays: tuple[NDArray[Any], ...] = (self._entries, self._sizes, self._folded, self._signatures)
        return sum(array.nbytes for array in arrays)

    def apply(self, records: Records) -> None:
        """Take in lines of the log, in their order."""
        if len(records) > _FEW:
            self._rebuild(np.concatenate([self.records(), records]))
            return
        for record in records:
            if record["size"]:
                self.put(int(record["entry"]), int(record["size"]), record["signature"])
            else:
                self.strike(int(record["entry"]))

    def records(self) -> Records:
        """Everything that stands in the table, as lines of a new log; the stamps are for the writer to set."""
        rows = np.flatnonzero(self._entries[: self._count])
        records = np.zeros(len(rows), dtype=RECORDS[self._level])
        records["entry"], records["size"] = self._entries[rows], self._sizes[rows]
        records["signature"] = self._signatures[rows]
        return records

    def put(self, entry_no: int, size: int, signature: Words) -> None:
        """Enter an entry, or enter it anew."""
        self.strike(entry_no)
        self.append(entry_no, size, signature)

    def append(self, entry_no: int, size: int, signature: Words) -> None:
        """Enter an entry that is not in the table."""
        if self._count == len(self._entries):
            self._rebuild(self.records())
        row = self._count
        self._entries[row], self._sizes[row], self._signatures[row] = entry_no, size, signature
        self._folded[row] = _xored(signature, _FOLDS)
        self._count += 1
        self._live += 1
        self._newest = max(self._newest, entry_no)
        if self._ordered == row and (row == 0 or self._sizes[row - 1] <= size):
            self._ordered += 1

    def strike(self, entry_no: int) -> None:
        """Take an entry out, if it is in."""
        if entry_no <= self._newest:
            struck = np.flatnonzero(self._entries[: self._count] == entry_no)
            self._entries[struck] = 0
            self._live -= len(struck)

    def near(self, size: int, signature: Words) -> list[Near]:
        """Every entry that may be alike; most others are left out."""
        if self._count <= _ONE_PASS_ROWS:
            return list(self._near(0, self._count, size, signature))
        smallest, largest = map(np.uint32, _window(size))
        ordered = self._sizes[: self._ordered]
        start = int(np.searchsorted(ordered, smallest, side="left"))
        end = int(np.searchsorted(ordered, largest, side="right"))
        return [
            *self._near(start, end, size, signature),
            *self._near(self._ordered, self._count, size, signature),
        ]

    def _near(self, start: int, end: int, size: int, signature: Words) -> Iterator[Near]:
        if start == end:
            return
        total = self._sizes[start:end] + np.uint32(size)
        distances = _distances(self._folded[start:end], _xored(signature, _FOLDS))
        kept = np.flatnonzero(distances * np.uint32(7) <= total)
        if len(kept) == 0:
            return
        distances = _distances(self._signatures[start:end][kept], signature)
        total = total[kept]
        close = (distances * np.uint32(7) <= total) & (self._entries[start:end][kept] > 0)
        for row, distance, both in zip(kept[close], distances[close], total[close], strict=True):
            # sets that differ in d of s bigrams share (s - d) / 2 and unite (s + d) / 2
            most = (int(both) - int(distance)) / (int(both) + int(distance))
            yield Near(most, int(self._entries[start + row]))

    def _rebuild(self, records: Records) -> None:
        """Keep the last line of each entry, in order of size, with room to grow."""
        _, last = np.unique(records["entry"][::-1], return_index=True)
        records = records[::-1][last]
        records = records[records["size"] > 0]
        records = records[np.argsort(records["size"], kind="stable")]
        self._allocate(max(_FIRST_ROWS, 2 * len(records)))
        count = self._count = self._ordered = self._live = len(records)
        self._entries[:count], self._sizes[:count] = records["entry"], records["size"]
        self._signatures[:count] = records["signature"]
        self._folded[:count] = _xored(records["signature"], _FOLDS)
        self._newest = max(self._newest, int(records["entry"].max(initial=0)))


def _xored(signatures: Words, parts: int) -> Words:
    """Signatures of a ``parts``-th of the length."""
    *rows, words = signatures.shape
    folded: Words = np.bitwise_xor.reduce(signatures.reshape(*rows, parts, words // parts), axis=-2)
    return folded


def _distances(signatures: Words, signature: Words) -> Counts:
    """In how many bits each differs from the one."""
    counts = np.bitwise_count(signatures ^ signature)
    distances: Counts = counts.sum(axis=1, dtype=np.uint32) if counts.shape[1] > 1 else counts[:, 0].astype(np.uint32)
    return distances
