"""The rooms' SQL as PostgreSQL takes it: numbered parameters, and its own words for the few that differ."""

import re
from functools import lru_cache
from typing import NamedTuple

_PARAMETER = re.compile(r"(?<!:):([a-z_][a-z0-9_]*)")
# what steers SQLite away from an index would hide the owner from a planner that sends a statement to one shard
_PLANNER_HINT = re.compile(r"\+(?=(?:user_no|space_no)\b)")
_BYTES = re.compile(r"\bBLOB\b")
# a key of an index has a few kilobytes at most, a URI may have more
_DIGEST = "MD5(internal_uri)"
_LONG_KEY = re.compile(r"(?<=session_id, )internal_uri(?=\) DO UPDATE)")
# a hint on another column, or the long key in another place: this module has to learn it
_UNSPOKEN = re.compile(r"\bON CONFLICT \([^)]*\binternal_uri\b|\bWHERE \+")


class Statement(NamedTuple):
    """A statement with ``$1`` to ``$n``, and the names of the parameters in that order."""

    text: str
    names: tuple[str, ...]


@lru_cache(maxsize=4096)
def for_postgres(sql: str) -> Statement:
    """Each name becomes one number, however often it stands. `ValueError` for what it would leave wrong."""
    names: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        return f"${names.setdefault(match[1], len(names) + 1)}"

    text = _LONG_KEY.sub(_DIGEST, _BYTES.sub("BYTEA", _PLANNER_HINT.sub("", sql)))
    if _UNSPOKEN.search(text.replace(_DIGEST, "")):
        raise ValueError(f"PostgreSQL would take this statement otherwise: {sql}")
    text = _PARAMETER.sub(number, text)
    return Statement(text, tuple(names))
