"""The text index: for each pair of neighbouring characters, and each character beyond ASCII, the entries that hold it.

Entries are indexed a few hundred at a time; until then a query reads their texts. The index only ever names too many:
entries that are gone or say something else by now. So whoever asks it verifies by the text.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

SEGMENT_ENTRIES = 512
SEGMENTS_IN_BLOCK = 8
BUCKETS = 256

Codes = NDArray[np.uint64]
Numbers = NDArray[np.uint32]

_PAIR_BITS = np.uint64(21)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_BUCKET_SHIFT = np.uint64(64 - 8)  # the upper 8 bits of a gram choose one of 256 buckets
_SPACE = 32
_BEYOND_ASCII = 128


def packed(entry_nos: Sequence[int], texts: Sequence[str]) -> Iterator[tuple[int, bytes]]:
    """Bucket numbers with their postings, each of them a gram (upper half) and an entry (lower half)."""
    points = _points("".join(f"{text}\n" for text in texts))
    owners = np.repeat(np.array(entry_nos, dtype=np.uint64), [len(text) + 1 for text in texts])
    pairs = np.flatnonzero((points[:-1] > _SPACE) & (points[1:] > _SPACE))
    singles = np.flatnonzero(points >= _BEYOND_ASCII)
    grams = _grams(np.concatenate([points[pairs] << _PAIR_BITS | points[pairs + 1], points[singles]]))
    postings = np.unique(grams << _HALF | owners[np.concatenate([pairs, singles])])
    edges = np.searchsorted(postings, np.arange(BUCKETS, dtype=np.uint64) << _BUCKET_SHIFT)
    for bucket, (start, end) in enumerate(zip(edges, [*edges[1:], len(postings)], strict=True)):
        if start < end:
            yield bucket, postings[start:end].tobytes()


def grams_of(term: str) -> list[int]:
    """What an entry that holds the term holds as well; the most telling few first. Empty where the index cannot say."""
    points = _points(term)
    if len(points) == 1:
        return [int(gram) for gram in _grams(points)] if points[0] >= _BEYOND_ASCII else []
    indexed = (points[:-1] > _SPACE) & (points[1:] > _SPACE)  # a term may hold control characters
    pairs = (points[:-1] << _PAIR_BITS | points[1:])[indexed]
    return [int(gram) for gram in _grams(np.concatenate([pairs[0::2], pairs[1::2]]))]


def bucket_of(gram: int) -> int:
    """Where the postings of a gram lie."""
    return gram >> 24


def entries_with(gram: int, blocks: Iterable[bytes]) -> Numbers:
    """The entries that blocks of the gram's bucket name for it; the same one may come twice."""
    halves = np.frombuffer(b"".join(blocks), dtype="<u4").reshape(-1, 2)
    named: Numbers = halves[halves[:, 1] == gram, 0]
    return named


def _points(text: str) -> Codes:
    return np.frombuffer(text.encode("utf-32-le"), dtype="<u4").astype(np.uint64)


def _grams(codes: Codes) -> Codes:
    return codes * _SPREAD >> _HALF
