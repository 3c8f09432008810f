"""Participants named in a query.

A name pulls every turn of that person, so it is taken out of what is searched for; that the query names somebody is a
sign of its own.
"""

import re
from collections.abc import Iterable

from msgspec import Struct

from memory_gateway.kit.text import collapse, fold

# Names that are no names: as words of a query they mean something else.
_ROLES = frozenset(
    "user assistant bot ai system agent human me i you we admin tool 用户 助手 我 你 您 机器人 管理员 客服".split()
)
_SHORTEST_FIRST_NAME = 3
_LATIN_EDGE = re.compile(r"[0-9a-z\u00c0-\u024f]", re.IGNORECASE)


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
    """Who is named. A query of names alone stays whole."""
    folded = fold(query)
    found: dict[int, str] = {}
    for name, number in _names(participants).items():
        if name in folded and re.search(_pattern(name), folded):
            found[number] = f"{found[number]}|{_pattern(name)}" if number in found else _pattern(name)
    if not found:
        return Naming(query, None)
    patterns = "|".join(sorted(found.values(), key=len, reverse=True))
    rest = collapse(re.sub(patterns, " ", query, flags=re.IGNORECASE))
    return Naming(rest if _says_something(rest) else query, next(iter(found)) if len(found) == 1 else None)


def _names(participants: Iterable[Participant]) -> dict[str, int]:
    """Whom each name means, longest first: full names, and first names that only one of them has."""
    whole: dict[str, int] = {}
    first: dict[str, set[int]] = {}
    for participant in participants:
        name = fold(participant.name).strip()
        if name and name not in _ROLES:
            whole.setdefault(name, participant.participant_no)
            word = name.split()[0]
            if len(word) >= _SHORTEST_FIRST_NAME and word not in _ROLES:
                first.setdefault(word, set()).add(participant.participant_no)
    alone = {word: numbers.pop() for word, numbers in first.items() if len(numbers) == 1}
    return dict(sorted((alone | whole).items(), key=lambda item: -len(item[0])))


def _pattern(name: str) -> str:
    """Latin names as whole words with their possessive, all others wherever they stand."""
    before = r"(?<![0-9a-z\u00c0-\u024f])" if _LATIN_EDGE.match(name[0]) else ""
    after = r"(?:['\u2019]s)?(?![0-9a-z\u00c0-\u024f])" if _LATIN_EDGE.match(name[-1]) else ""
    return f"{before}{re.escape(name)}{after}"


def _says_something(text: str) -> bool:
    return any(character.isalnum() for character in text)
