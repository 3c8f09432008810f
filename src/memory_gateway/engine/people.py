"""Participants named in a query.

A name pulls every turn of that person, so it is taken out of what is searched for; that the query names somebody is a
feature of its own.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from msgspec import Struct

from memory_gateway.engine.analysis import STOP_WORDS, UNSPACED
from memory_gateway.kit.text import collapse, normalised

# Names that are no names: as words of a query they mean something else.
_ROLES = frozenset(
    "user assistant bot ai system agent human me i you we admin tool 用户 助手 我 你 您 机器人 管理员 客服".split()
)
# Names that are words as well: meant where they are written as names.
_WORDS_AS_WELL = frozenset(
    """
    angel april art august bill bishop chance chase christian cliff crystal daisy dawn dean drew earl faith frank gene
    grace grant guy hope hunter iris ivy jack jasmine joy june king lily mark mason may melody miles olive page parker
    pat pearl penny ray rich rob rose ruby sandy skip sky star summer sunny victor violet wade will
    """.split()
)
_SHORTEST_NAME = 2
_SHORTEST_FIRST_NAME = 3
_OF_A_WORD = re.compile(rf"[^\W_{UNSPACED}]")  # in a script that puts spaces between words
_POSSESSIVE = re.compile("['\u2019]s(?![^\\W_])", re.IGNORECASE)


class Participant(Struct, frozen=True):
    """One who speaks in a space."""

    participant_no: int
    sender_id: str
    name: str


Names = Mapping[str, frozenset[int]]
"""Whom each name means, by participant number: full names, and first names that only one of them has."""


class Naming(Struct, frozen=True):
    """A query without the participants' names, and the one whom it names, None for none or several."""

    rest: str
    speaker: int | None


def naming(query: str, names: Names) -> Naming:
    """Who is named, the longest name first where one holds another. A query of names alone stays whole."""
    text = collapse(normalised(query, "NFKC"))[: len(query)]  # a character may become many, but none is worth it
    lowered = _lowered(text)
    bearers = {name: bearing for name, bearing in names.items() if name in lowered}
    if not bearers:
        return Naming(query, None)
    found: set[int] = set()
    taken = bytearray(len(text))
    for name in sorted(bearers, key=len, reverse=True):
        for start, end in _places(name, text, lowered):
            if not any(taken[start:end]):
                taken[start:end] = b"1" * (end - start)
                found |= bearers[name]
    if not found:
        return Naming(query, None)
    rest = collapse("".join(" " if gone else character for character, gone in zip(text, taken, strict=True)))
    return Naming(rest if _says_something(rest) else query, found.pop() if len(found) == 1 else None)


def _places(name: str, text: str, lowered: str) -> Iterator[tuple[int, int]]:
    """Where the name stands by itself, with its possessive."""
    start = lowered.find(name)
    while start >= 0:
        end = start + len(name)
        possessive = _POSSESSIVE.match(text, end)
        whole = end if possessive is None else possessive.end()
        written = name not in _WORDS_AS_WELL or (start > 0 and text[start].isupper())
        if written and not _joined(text, start) and not _joined(text, whole):
            yield start, whole
        start = lowered.find(name, end)


def _joined(text: str, at: int) -> bool:
    """Whether a word goes on across this place."""
    return 0 < at < len(text) and bool(_OF_A_WORD.match(text[at - 1]) and _OF_A_WORD.match(text[at]))


def _lowered(text: str) -> str:
    return text.lower() if text.isascii() else "".join(map(_lower, text))


@lru_cache(maxsize=4096)
def _lower(character: str) -> str:
    """One character for one, so that places stay."""
    lower = character.lower()
    return lower if len(lower) == 1 else character


def names_of(participants: Iterable[Participant]) -> Names:
    """The names of these people, each as a query has it in lower case."""
    whole: dict[str, set[int]] = {}
    first: dict[str, set[int]] = {}
    for participant in participants:
        name = _plain(participant.name)
        if _is_name(name):
            whole.setdefault(name, set()).add(participant.participant_no)
            word = name.split()[0]
            if len(word) >= _SHORTEST_FIRST_NAME and _is_name(word):
                first.setdefault(word, set()).add(participant.participant_no)
    own = {word: bearing for word, bearing in first.items() if len(bearing) == 1}
    return {name: frozenset(bearing) for name, bearing in (own | whole).items()}


def _is_name(name: str) -> bool:
    return len(name) >= _SHORTEST_NAME and name not in _ROLES and (name not in STOP_WORDS or name in _WORDS_AS_WELL)


@lru_cache(maxsize=65_536)
def _plain(name: str) -> str:
    return _lowered(collapse(normalised(name, "NFKC")))


def _says_something(text: str) -> bool:
    return any(character.isalnum() for character in text)
