"""Memory entries as the rules are written down, in memory, comparing everything with everything."""

import re
import unicodedata
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations

PROTECTED = {"personal_info", "user_preference"}


def folded(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def bigram_set(text: str) -> set[str]:
    normal = "".join(char for char in folded(text) if unicodedata.category(char)[0] in "LMN")
    return {normal} if len(normal) == 1 else {normal[at : at + 2] for at in range(len(normal) - 1)}


def jaccard(one: str, other: str) -> Fraction:
    first, second = bigram_set(one), bigram_set(other)
    if not first and not second:
        return Fraction(int(one.strip() == other.strip()))
    return Fraction(len(first & second), len(first | second))


def sentences(text: str) -> list[str]:
    """For texts without quotes and brackets: up to a Latin stop before white space, Han stops, or the line's end."""
    return [part for part in re.split(r"\n|(?<=[.!?])\s+|(?<=[。！？])(?![。！？])", text) if part.strip()]


def same(sentence: str) -> str:
    return " ".join(folded(sentence).split())


def keys(text: str) -> list[str]:
    return [same(sentence) for sentence in sentences(text)]


@dataclass(frozen=True)
class SimpleEntry:
    number: int
    content: str
    importance: int = 5
    priority: int = 1
    category: str = "knowledge"
    expires_ms: int | None = None


@dataclass
class SimpleEntries:
    """One user's entries by number, oldest first."""

    entries: dict[int, SimpleEntry] = field(default_factory=dict)
    made: int = 0

    def live(self, now_ms: int) -> list[SimpleEntry]:
        return [one for one in self.entries.values() if one.expires_ms is None or one.expires_ms > now_ms]

    def create(self, new: SimpleEntry, now_ms: int) -> tuple[int, Fraction | None]:
        """The number of the entry that now holds the text, and how alike it was if it was there before."""
        for entry in self.live(now_ms):
            if set(keys(new.content)) <= set(keys(entry.content)):
                return self._absorb(entry, new), Fraction(1)
        alike = [(jaccard(entry.content, new.content), -entry.number) for entry in self.live(now_ms)]
        if alike and max(alike)[0] >= Fraction(3, 4):
            similarity, negative = max(alike)
            return self._absorb(self.entries[-negative], new), similarity
        self.made += 1
        self.entries[self.made] = replace(new, number=self.made)
        return self.made, None

    def _absorb(self, entry: SimpleEntry, new: SimpleEntry) -> int:
        self.entries[entry.number] = replace(self._united(entry, new), importance=max(entry.importance, new.importance))
        return entry.number

    def _united(self, entry: SimpleEntry, other: SimpleEntry) -> SimpleEntry:
        held, content = set(keys(entry.content)), entry.content
        for sentence in sentences(other.content):
            if same(sentence) not in held:
                held.add(same(sentence))
                content += "\n" + sentence.strip()
        protects = other.category in PROTECTED and entry.category not in PROTECTED
        endless = entry.expires_ms is None or other.expires_ms is None
        return replace(
            entry,
            content=content,
            priority=max(entry.priority, other.priority),
            category=other.category if protects else entry.category,
            expires_ms=None if endless else max(entry.expires_ms or 0, other.expires_ms or 0),
        )

    def consolidate(self, now_ms: int) -> int:
        merged = 0
        while pair := self._strongest(now_ms):
            survivor, other = sorted(pair, key=lambda one: (-one.importance, -one.priority, one.number))
            importance = min(10, survivor.importance + 1)
            self.entries[survivor.number] = replace(self._united(survivor, other), importance=importance)
            del self.entries[other.number]
            merged += 1
        return merged

    def _strongest(self, now_ms: int) -> tuple[SimpleEntry, SimpleEntry] | None:
        best, chosen = Fraction(0), None
        for older, newer in combinations(sorted(self.live(now_ms), key=lambda one: one.number), 2):
            similarity = jaccard(older.content, newer.content)
            if similarity >= Fraction(3, 4) and similarity > best:
                best, chosen = similarity, (older, newer)
        return chosen

    def found(self, query: str, now_ms: int) -> list[int]:
        """Numbers, the most important first, of equals the newest; of equal contents only the first."""
        terms = folded(query).split()
        ordered = sorted(self.live(now_ms), key=lambda one: (-one.importance, -one.number))
        shown: dict[str, int] = {}
        for entry in ordered:
            if all(term in folded(entry.content) for term in terms):
                shown.setdefault(same(entry.content), entry.number)
        return list(shown.values())
