"""Which entries of a set are alike, kept true while entries come, change and go."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import accumulate

import numpy as np

from memory_gateway.memory_service.entries.signatures import LEVEL_BITS, Table, level_of, levels_near, signature_of
from memory_gateway.memory_service.entries.similarity import Bigrams, bigrams

Alike = dict[int, float]
"""Other entries with the similarity to each. Floats tell any two fractions of such small numbers apart."""


class AlikePairs:
    """Entries are known by number, from 1."""

    def __init__(self, contents: dict[int, str]) -> None:
        self._tables = [Table(level) for level in range(len(LEVEL_BITS))]
        self._bigrams: dict[int, Bigrams] = {}
        self._signs: dict[int, str] = {}  # contents without letters and digits: alike when equal
        self._signs_of: defaultdict[str, set[int]] = defaultdict(set)
        self._alike: defaultdict[int, Alike] = defaultdict(dict)
        known = [(number, bigrams(content)) for number, content in contents.items()]
        # the smallest first, so that each search passes over no more than the tail of fitting sizes
        for number, pairs in sorted(known, key=lambda entry: len(entry[1])):
            self._enter(number, contents[number], pairs)

    def put(self, number: int, content: str) -> None:
        """An entry is new or says something else."""
        self.drop(number)
        self._enter(number, content, bigrams(content))

    def drop(self, number: int) -> None:
        """An entry is gone, if it was there."""
        for other in self._alike.pop(number, {}):
            del self._alike[other][number]
        pairs = self._bigrams.pop(number, None)
        if pairs is not None:
            self._tables[level_of(len(pairs))].strike(number)
        signs = self._signs.pop(number, None)
        if signs is not None:
            self._signs_of[signs].discard(number)

    def of(self, number: int) -> Alike:
        """The entries that are alike to this one."""
        return self._alike.get(number, {})

    def __iter__(self) -> Iterator[tuple[float, int, int]]:
        """Every pair once: its similarity, the older and the newer."""
        for number, alike in self._alike.items():
            for other, similarity in alike.items():
                if number < other:
                    yield similarity, number, other

    def _enter(self, number: int, content: str, pairs: Bigrams) -> None:
        size = len(pairs)
        if size == 0:
            signs = self._signs[number] = content.strip()
            self._join(number, ((other, 1.0) for other in self._signs_of[signs]))
            self._signs_of[signs].add(number)
        else:
            self._join(number, self._alike_to(pairs))
            self._bigrams[number] = pairs
            self._tables[level_of(size)].append(number, size, signature_of(pairs, level_of(size)))

    def _join(self, number: int, alike: Iterable[tuple[int, float]]) -> None:
        for other, similarity in alike:
            self._alike[number][other] = self._alike[other][number] = similarity

    def _alike_to(self, pairs: Bigrams) -> Iterator[tuple[int, float]]:
        size = len(pairs)
        near = [
            candidate.entry_no
            for level in levels_near(size)
            for candidate in self._tables[level].near(size, signature_of(pairs, level))
        ]
        for number, common in zip(near, self._shared(pairs, near), strict=True):
            united = size + len(self._bigrams[number]) - common
            if 4 * common >= 3 * united:
                yield number, common / united

    def _shared(self, pairs: Bigrams, numbers: list[int]) -> list[int]:
        """How many bigrams each of these has in common with the set."""
        if not numbers:
            return []
        sets = [self._bigrams[number] for number in numbers]
        every = np.concatenate(sets)
        at = np.minimum(np.searchsorted(pairs, every), len(pairs) - 1)
        starts = [0, *accumulate(len(one) for one in sets[:-1])]
        shared: list[int] = np.add.reduceat((pairs[at] == every).astype(np.int64), starts).tolist()
        return shared
