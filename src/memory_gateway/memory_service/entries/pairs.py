"""Which entries of a set are alike, the strongest pair first, while entries come, change and go."""

import heapq
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import accumulate

import numpy as np
from msgspec import Struct

from memory_gateway.memory_service.entries.signatures import LEVEL_BITS, Table, level_of, levels_near, signature_of
from memory_gateway.memory_service.entries.similarity import Bigrams, bigrams

_Pair = tuple[float, int, int]
"""The similarity, negative, then the older and the newer entry: in rising order, the strongest first. Floats tell any
two fractions of such small numbers apart."""


class _Group(Struct, eq=False):
    """Entries that say the same, letter by letter, the oldest first; and the groups that are alike."""

    number: int
    content: str
    bigrams: Bigrams
    members: list[int]
    alike: dict[int, float]


class AlikePairs:
    """Entries are known by number, the older the smaller.

    Of a pair of groups, only the oldest entries can be the next pair, and of one group only the two oldest: thousands
    of entries that say the same are as many pairs, not millions.
    """

    def __init__(self, contents: dict[int, str]) -> None:
        self._tables = [Table(level) for level in range(len(LEVEL_BITS))]
        self._groups: dict[int, _Group] = {}
        self._made = 0
        self._with_content: dict[str, _Group] = {}
        self._with_signs: defaultdict[str, set[int]] = defaultdict(set)
        self._group_of: dict[int, _Group] = {}
        self._waiting: list[_Pair] = []
        members: defaultdict[str, list[int]] = defaultdict(list)
        for number in sorted(contents):
            members[contents[number]].append(number)
        known = [(content, bigrams(content)) for content in members]
        # the smallest first, so that each search passes over no more than the tail of fitting sizes
        for content, pairs in sorted(known, key=lambda one: len(one[1])):
            group = self._make_group(content, pairs, members[content])
            self._group_of.update(dict.fromkeys(group.members, group))
            self._offer(group)

    def strongest(self) -> tuple[int, int] | None:
        """The most alike pair, of equals that with the oldest entries; handed out once. None where no pair is left."""
        while self._waiting:
            negative, older, newer = heapq.heappop(self._waiting)
            if self._similarity(older, newer) == -negative:
                return older, newer  # else one of them is gone or says something else by now
        return None

    def put(self, number: int, content: str) -> None:
        """An entry is new or says something else."""
        self.drop(number)
        group = self._with_content.get(content)
        if group is None:
            group = self._make_group(content, bigrams(content), [])
        insort(group.members, number)
        self._group_of[number] = group
        if number in group.members[:2]:
            self._offer(group)

    def drop(self, number: int) -> None:
        """An entry is gone, if it was there."""
        group = self._group_of.pop(number, None)
        if group is None:
            return
        at = bisect_left(group.members, number)
        del group.members[at]
        if not group.members:
            self._remove_group(group)
        elif at < 2:
            self._offer(group)

    def _similarity(self, one: int, other: int) -> float | None:
        """None for entries that are not alike, or not both there."""
        first, second = self._group_of.get(one), self._group_of.get(other)
        if first is None or second is None:
            return None
        return 1.0 if first is second else first.alike.get(second.number)

    def _offer(self, group: _Group) -> None:
        """Let the pairs of the group's oldest entries wait for their turn."""
        first = group.members[0]
        if len(group.members) > 1:
            heapq.heappush(self._waiting, (-1.0, first, group.members[1]))
        for number, similarity in group.alike.items():
            other = self._groups[number].members[0]
            heapq.heappush(self._waiting, (-similarity, min(first, other), max(first, other)))

    def _make_group(self, content: str, pairs: Bigrams, members: list[int]) -> _Group:
        self._made += 1
        alike = dict(self._alike_to(pairs)) if len(pairs) else dict.fromkeys(self._with_signs[content.strip()], 1.0)
        group = _Group(self._made, content, pairs, members, alike)
        self._groups[group.number] = self._with_content[content] = group
        for number, similarity in alike.items():
            self._groups[number].alike[group.number] = similarity
        size = len(pairs)
        if size:
            self._tables[level_of(size)].append(group.number, size, signature_of(pairs, level_of(size)))
        else:
            self._with_signs[content.strip()].add(group.number)
        return group

    def _remove_group(self, group: _Group) -> None:
        del self._groups[group.number], self._with_content[group.content]
        for number in group.alike:
            del self._groups[number].alike[group.number]
        if len(group.bigrams):
            self._tables[level_of(len(group.bigrams))].strike(group.number)
        else:
            self._with_signs[group.content.strip()].discard(group.number)

    def _alike_to(self, pairs: Bigrams) -> Iterator[tuple[int, float]]:
        size = len(pairs)
        near = [
            candidate.entry_no
            for level in levels_near(size)
            for candidate in self._tables[level].near(size, signature_of(pairs, level))
        ]
        sets = [self._groups[number].bigrams for number in near]
        for number, other, common in zip(near, sets, _common(pairs, sets), strict=True):
            united = size + len(other) - common
            if 4 * common >= 3 * united:
                yield number, common / united


def _common(pairs: Bigrams, sets: list[Bigrams]) -> Iterable[int]:
    """How many bigrams each of the sets has in common with the one."""
    if not sets:
        return []
    every = np.concatenate(sets)
    at = np.minimum(np.searchsorted(pairs, every), len(pairs) - 1)
    starts = [0, *accumulate(len(one) for one in sets[:-1])]
    common: list[int] = np.add.reduceat((pairs[at] == every).astype(np.int64), starts).tolist()
    return common
