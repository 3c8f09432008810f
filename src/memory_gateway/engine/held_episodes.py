"""Episodes ready to be answered with: all but the scores, which belong to a query.

What is said of a segment changes with its turns alone: its subject and summary are made of them, stored or not. A
closed segment takes no more turns, and turns of an open one are counted in the space's.
"""

import sys
from collections import defaultdict
from collections.abc import Sequence

from msgspec import Struct

from memory_gateway.engine import store
from memory_gateway.engine.items import ItemPlace, ReadyEpisode, ready_episode
from memory_gateway.engine.last_used import LastUsed
from memory_gateway.engine.recall import Segment
from memory_gateway.engine.segments import Turn
from memory_gateway.storage.lists import with_list
from memory_gateway.storage.port import Transaction

MOST_BYTES = 32 << 20
_A_FACT_MORE = 300  # bytes of objects around a line


class _Held(Struct, frozen=True):
    """An episode, and how many turns the space had when it was read."""

    episode: ReadyEpisode
    is_open: bool
    turns: int

    @property
    def size(self) -> int:
        facts = sum(sys.getsizeof(line) + _A_FACT_MORE for _, line in self.episode.facts.values())
        return facts + sys.getsizeof(self.episode.item["episode"])

    def is_good(self, turns: int) -> bool:
        return self.turns == turns or (not self.is_open and self.turns < turns)


class HeldEpisodes:
    """Of the segments last shown, by owner. Several threads may ask at once; each brings its transaction."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._episodes = LastUsed[_Held](most_bytes)

    async def of(
        self, transaction: Transaction, space_no: int, place: ItemPlace, numbers: Sequence[int], turns: int
    ) -> dict[int, ReadyEpisode]:
        """These segments with all of their turns, as the transaction sees them: a space of so many ``turns``."""
        found: dict[int, ReadyEpisode] = {}
        era = 0
        for number in numbers:
            held, era = self._episodes.get(space_no, (number, place))
            if held is not None and held.is_good(turns):
                found[number] = held.episode
        missing = [number for number in numbers if number not in found]
        if missing:
            said = await turns_of(transaction, space_no, missing)
            for segment in await segments_numbered(transaction, space_no, missing):
                number = segment.segment_no
                found[number] = ready_episode(place, segment, said[number], partly_hidden=False)
                held = _Held(found[number], bool(segment.is_open), turns)
                self._episodes.keep(space_no, held, era, (number, place))
        return found

    def forget(self, space_nos: list[int]) -> None:
        """These were erased."""
        self._episodes.forget(space_nos)


async def segments_numbered(transaction: Transaction, space_no: int, numbers: Sequence[int]) -> list[Segment]:
    """These segments, in one statement however many they are."""
    sql, params = with_list(store.SEGMENTS_NUMBERED, "segment_nos", numbers)
    return [Segment(*row) for row in await transaction.fetch(sql, {"space_no": space_no, **params})]


async def turns_of(transaction: Transaction, space_no: int, numbers: Sequence[int]) -> dict[int, list[Turn]]:
    """The turns of these segments, in order."""
    sql, params = with_list(store.TURNS_OF_SEGMENTS, "segment_nos", numbers)
    turns: defaultdict[int, list[Turn]] = defaultdict(list)
    for row in await transaction.fetch(sql, {"space_no": space_no, **params}):
        turns[row[1]].append(Turn(*row))
    return turns
