"""Participants named in a query.

A name pulls every turn of that person, so it is taken out of what is searched for; that the query names somebody is a
feature of its own.
"""

import re
import unicodedata
from collections.abc import Iterable

from msgspec import Struct

from memory_gateway.kit.text import collapse

# Names that are no names: as words of a query they mean something else.
_ROLES = frozenset(
    "user assistant bot ai system agent human me i you we admin tool 用户 助手 我 你 您 机器人 管理员 客服".split()
)
_SHORTEST_FIRST_NAME = 3
_LATIN = r"[0-9a-z\u00c0-\u024f]"


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
        found.update(bearers[names[(match.lastindex or 1) - 1]])
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
        if name and name not in _ROLES:
            whole.setdefault(name, set()).add(participant.participant_no)
            word = name.split()[0]
            if len(word) >= _SHORTEST_FIRST_NAME and word not in _ROLES:
                first.setdefault(word, set()).add(participant.participant_no)
    return {word: bearing for word, bearing in first.items() if len(bearing) == 1} | whole


def _pattern(name: str) -> str:
    """A group. Latin names as whole words with their possessive, all others wherever they stand."""
    before = rf"(?<!{_LATIN})" if re.match(_LATIN, name) else ""
    after = rf"(?:['\u2019]s)?(?!{_LATIN})" if re.match(_LATIN, name[-1]) else ""
    return f"{before}({re.escape(name)}){after}"


def _says_something(text: str) -> bool:
    return any(character.isalnum() for character in text)
