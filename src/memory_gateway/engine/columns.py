"""What scoring needs of every turn, as fixed-size records: a space's turns load as a few arrays, not as rows."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

BLOCK_TURNS = 1024

RECORD = np.dtype(
    [
        ("segment", "<u4"),
        ("previous", "<u4"),  # 1 + number of the turn before this one in its session, 0 for none
        ("length", "<u2"),  # terms in the turn
        ("speaker", "<u2"),  # participant number
        ("time", "<i8"),  # epoch milliseconds
        ("text_hash", "<u8"),  # of the folded text: an exact query finds its turn
    ]
)
POSTING = np.dtype([("turn", "<u4"), ("frequency", "<u2")])

Records = NDArray[np.void]
Turns = NDArray[np.int64]
Scores = NDArray[np.float64]
Mask = NDArray[np.bool_]


def block_of(turn_no: int) -> int:
    """The number of the block that holds a turn."""
    return turn_no // BLOCK_TURNS


def load_records(blocks: Iterable[bytes]) -> Records:
    """All blocks of a space, in order, as one array indexed by turn number."""
    return np.frombuffer(b"".join(blocks), dtype=RECORD)


def following(previous: NDArray[np.uint32]) -> Turns:
    """For each turn the turn after it in its session, or -1. The inverse of ``previous``."""
    after = np.full(len(previous), -1, dtype=np.int64)
    has_previous = np.flatnonzero(previous)
    after[previous[has_previous].astype(np.int64) - 1] = has_previous
    return after
