"""What scoring needs of every turn, as fixed-size records: a space's turns load as a few arrays, not as rows."""

from collections.abc import Iterable

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

BLOCK_TURNS = 1024

RECORD = np.dtype(
    [
        ("segment", "<u4"),
        ("previous", "<u4"),  # 1 + number of the turn before this one in its session, 0 for none
        ("length", "<u2"),  # terms in the turn
        ("speaker", "<u2"),  # participant number
        ("cues", "<u4"),  # bits of `cues`
        ("time", "<i8"),  # epoch milliseconds
        ("text_hash", "<u8"),  # of the folded text: an exact query finds its turn
    ]
)
POSTING = np.dtype([("turn", "<u4"), ("frequency", "<u2")])

Records = NDArray[np.void]
Turns = NDArray[np.int64]
Scores = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Links(Struct, frozen=True):
    """How the turns of a space hang together: the turns before and after each in its session, -1 where there is none,
    and its segment."""

    previous: Turns
    after: Turns
    segments: Turns


class Columns(Struct, frozen=True):
    """The records of a space, field by field: arrays indexed by turn number."""

    links: Links
    lengths: Scores
    speakers: NDArray[np.uint16]
    cues: NDArray[np.uint32]
    times: NDArray[np.int64]
    text_hashes: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def size(self) -> int:
        """In bytes."""
        fields = (self.lengths, self.speakers, self.cues, self.times, self.text_hashes)
        links = (self.links.previous, self.links.after, self.links.segments)
        return sum(array.nbytes for array in (*fields, *links))


def block_of(turn_no: int) -> int:
    """The number of the block that holds a turn."""
    return turn_no // BLOCK_TURNS


def load_records(blocks: Iterable[bytes]) -> Records:
    """All blocks of a space, in order, as one array indexed by turn number."""
    return np.frombuffer(b"".join(blocks), dtype=RECORD)


def columns_of(records: Records) -> Columns:
    """The records, turned on their side."""
    return Columns(
        links=links_of(records),
        lengths=records["length"].astype(np.float64),
        speakers=records["speaker"].copy(),
        cues=records["cues"].copy(),
        times=records["time"].copy(),
        text_hashes=records["text_hash"].copy(),
    )


def links_of(records: Records) -> Links:
    """The links that the records hold in one direction, in both."""
    previous = records["previous"].astype(np.int64) - 1
    after = np.full(len(records), -1, dtype=np.int64)
    has_previous = np.flatnonzero(previous >= 0)
    after[previous[has_previous]] = has_previous
    return Links(previous, after, records["segment"].astype(np.int64))
