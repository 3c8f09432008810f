"""What scoring needs of every turn, as fixed-size records: a space's turns load as a few arrays, not as rows."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

BLOCK_TURNS = 1024

RECORD = np.dtype(
    [
        ("segment", "<u4"),
        ("previous", "<u4"),  # 1 + number of the turn before this one in its session, 0 for none
        ("length_and_cues", "<u2"),  # terms in the turn, and above them the bits of `cues`: see `length_and_cues`
        ("speaker", "<u2"),  # participant number
        ("time", "<i8"),  # epoch milliseconds
        ("text_hash", "<u8"),  # of the folded text: an exact query finds its turn
    ]
)
_LENGTH_BITS = 14
LONGEST = (1 << _LENGTH_BITS) - 1
POSTING = np.dtype([("turn", "<u4"), ("frequency", "<u2")])

Records = NDArray[np.void]
Turns = NDArray[np.int64]
Scores = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Links(Struct, frozen=True):
    """How the turns of a space hang together: the turns before and after each in its session, -1 where there is none,
    and its segment, below ``segment_count``."""

    previous: Turns
    after: Turns
    segments: Turns
    segment_count: int


class Columns(Struct, frozen=True):
    """The records of a space, field by field: arrays indexed by turn number."""

    links: Links
    lengths: Scores
    speakers: NDArray[np.uint16]
    cues: NDArray[np.uint16]
    times: NDArray[np.int64]
    text_hashes: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        links = (self.links.previous, self.links.after, self.links.segments)
        return (*links, self.lengths, self.speakers, self.cues, self.times, self.text_hashes)

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(array.nbytes for array in self.arrays)


def block_of(turn_no: int) -> int:
    """The number of the block that holds a turn."""
    return turn_no // BLOCK_TURNS


def load_records(blocks: Iterable[bytes]) -> Records:
    """All blocks of a space, in order, as one array indexed by turn number."""
    return np.frombuffer(b"".join(blocks), dtype=RECORD)


def length_and_cues(length: int, cues: int) -> int:
    """As a record holds them."""
    return cues << _LENGTH_BITS | min(length, LONGEST)


def columns_of(records: Records) -> Columns:
    """The records, turned on their side. Searches share them: nobody may write to them."""
    both = records["length_and_cues"]
    columns = Columns(
        links=links_of(records),
        lengths=(both & LONGEST).astype(np.float64),
        speakers=records["speaker"].copy(),
        cues=(both >> _LENGTH_BITS).astype(np.uint16),
        times=records["time"].copy(),
        text_hashes=records["text_hash"].copy(),
    )
    for array in columns.arrays:
        array.flags.writeable = False
    return columns


def links_of(records: Records) -> Links:
    """The links that the records hold in one direction, in both."""
    previous = records["previous"].astype(np.int64) - 1
    after = np.full(len(records), -1, dtype=np.int64)
    has_previous = np.flatnonzero(previous >= 0)
    after[previous[has_previous]] = has_previous
    segments = records["segment"].astype(np.int64)
    return Links(previous, after, segments, int(segments.max(initial=-1)) + 1)


def after_in_segment(links: Links) -> Turns:
    """The turns after each, -1 where the segment ends: beyond it begins another conversation, as a rule."""
    same = np.append(links.segments, -1)[links.after] == links.segments
    return np.where(same, links.after, -1)
