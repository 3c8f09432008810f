"""Consolidation as a plan: which entry takes in which, the strongest pair first, until no pair is left.

A plan is made on a snapshot and away from the database, for it may take seconds.
"""

from msgspec import Struct
from msgspec.structs import replace

from memory_gateway.memory_service.entries.merging import merged_content, raised
from memory_gateway.memory_service.entries.pairs import AlikePairs
from memory_gateway.memory_service.entries.stored import Digest, digest_of


class Candidate(Struct, frozen=True):
    """What a plan must know of an entry. ``change_no`` is the number of its last change."""

    entry_no: int
    change_no: int
    content: str
    importance: int
    priority: int

    @property
    def rank(self) -> tuple[int, int, int]:
        """Of two, the higher takes in the other: by importance, then by priority, then by age."""
        return self.importance, self.priority, -self.entry_no


class Step(Struct, frozen=True):
    """One entry takes in another."""

    survivor: int
    other: int


class NewContent(Struct, frozen=True):
    """What an entry says after all its steps."""

    text: str
    digest: Digest


class Plan(Struct, frozen=True):
    """Steps in their order; new contents only of entries that are left and have changed."""

    steps: list[Step]
    contents: dict[int, NewContent]


class Planner:
    """A snapshot of one user's live entries, and the pairs among them."""

    def __init__(self, candidates: list[Candidate]) -> None:
        self._stored = {candidate.entry_no: candidate for candidate in candidates}
        self._pairs = AlikePairs({candidate.entry_no: candidate.content for candidate in candidates})
        self._touched: set[int] = set()

    def differences(self, changes: dict[int, int]) -> tuple[set[int], set[int]]:
        """Which entries are new or changed, and which are gone, where these are there with these change numbers."""
        changed = {number for number, change_no in changes.items() if self._change_no(number) != change_no}
        return changed, self._stored.keys() - changes.keys()

    def _change_no(self, number: int) -> int | None:
        candidate = self._stored.get(number)
        return None if candidate is None else candidate.change_no

    def update(self, changed: list[Candidate], gone: set[int]) -> None:
        """Bring the snapshot up to date; only what changed is compared anew."""
        for number in gone:
            del self._stored[number]
            self._pairs.drop(number)
        self._stored.update((candidate.entry_no, candidate) for candidate in changed)
        for number in self._touched.union(candidate.entry_no for candidate in changed) - gone:
            self._pairs.put(number, self._stored[number].content)
        self._touched.clear()

    def plan(self) -> Plan:
        """The plan for the snapshot. Call `update` before the next one."""
        entries = dict(self._stored)
        steps: list[Step] = []
        while (pair := self._pairs.strongest()) is not None:
            survivor, other = sorted((entries[number] for number in pair), key=lambda entry: entry.rank, reverse=True)
            steps.append(Step(survivor.entry_no, other.entry_no))
            entries[survivor.entry_no] = self._take_in(survivor, entries.pop(other.entry_no))
        return Plan(steps, self._new_contents(entries, steps))

    def _take_in(self, survivor: Candidate, other: Candidate) -> Candidate:
        content = merged_content(survivor.content, other.content)
        self._touched |= {survivor.entry_no, other.entry_no}
        self._pairs.drop(other.entry_no)
        if content != survivor.content:
            self._pairs.put(survivor.entry_no, content)
        priority = max(survivor.priority, other.priority)
        return replace(survivor, content=content, importance=raised(survivor.importance), priority=priority)

    def _new_contents(self, entries: dict[int, Candidate], steps: list[Step]) -> dict[int, NewContent]:
        texts = {step.survivor: entries[step.survivor].content for step in steps if step.survivor in entries}
        return {
            number: NewContent(text, digest_of(text))
            for number, text in texts.items()
            if text != self._stored[number].content
        }
