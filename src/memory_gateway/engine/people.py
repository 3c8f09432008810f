"""Participants named in a query.

A name pulls every turn of that person, so it is taken out of what is searched for; that the query names somebody is a
feature of its own.
"""

import re
import unicodedata
from collections.abc import Iterable

from msgspec import Struct

from memory_gateway.engine.analysis import STOP_WORDS, UNSPACED
from memory_gateway.kit.text import collapse

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
_OF_A_WORD = rf"[^\W_{UNSPACED}]"  # in a script that puts spaces between words


class Participant(Struct, frozen=True):
    """One who speaks in a space."""

    participant_no: int
    sender_id: str
    name: str


class Naming(Struct, frozen=True):
    """A query without the participants' names, and the one whom it names, None for none or several."""

    rest: str
    speaker: int | None


def naming(query: str, participants: Iterable[Participant]) -> Naming:
    """Who is named, the longest name first where one holds another. A query of names alone stays whole."""
    text = collapse(unicodedata.normalize("NFKC", query))
    lowered = text.lower()
    bearers = {name: bearing for name, bearing in _bearers(participants).items() if name in lowered}
    if not bearers:
        return Naming(query, None)
    names = sorted(bearers, key=len, reverse=True)
    found: set[int] = set()

    def taken(match: re.Match[str]) -> str:
        name = names[(match.lastindex or 1) - 1]
        if name in _WORDS_AS_WELL and not (match.start() > 0 and match[0][0].isupper()):
            return match[0]
        found.update(bearers[name])
        return " "

    rest = collapse(re.sub("|".join(map(_pattern, names)), taken, text, flags=re.IGNORECASE))
    if not found:
        return Naming(query, None)
    return Naming(rest if _says_something(rest) else query, found.pop() if len(found) == 1 else None)


def _bearers(participants: Iterable[Participant]) -> dict[str, set[int]]:
    """Whom each name means: full names, and first names that only one of them has."""
    whole: dict[str, set[int]] = {}
    first: dict[str, set[int]] = {}
    for participant in participants:
        name = collapse(unicodedata.normalize("NFKC", participant.name)).lower()
        if _is_name(name):
            whole.setdefault(name, set()).add(participant.participant_no)
            word = name.split()[0]
            if len(word) >= _SHORTEST_FIRST_NAME and _is_name(word):
                first.setdefault(word, set()).add(participant.participant_no)
    return {word: bearing for word, bearing in first.items() if len(bearing) == 1} | whole


def _is_name(name: str) -> bool:
    return len(name) >= _SHORTEST_NAME and name not in _ROLES and (name not in STOP_WORDS or name in _WORDS_AS_WELL)


def _pattern(name: str) -> str:
    """A group. Whole words with their possessive; names in scripts without spaces wherever they stand."""
    before = rf"(?<!{_OF_A_WORD})" if re.match(_OF_A_WORD, name) else ""
    after = rf"(?:['\u2019]s)?(?!{_OF_A_WORD})" if re.match(_OF_A_WORD, name[-1]) else ""
    return f"{before}({re.escape(name)}){after}"


def _says_something(text: str) -> bool:
    return any(character.isalnum() for character in text)
