"""Ids in EverOS's form. The number at the end is the segment's or turn's own, so an id leads back without a look-up."""

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Literal, NamedTuple

Kind = Literal["ep", "af", "ac"]
_DAY_MS = 86_400_000
_END = r"(?:s(?P<space>\d{1,10}))?"
_NUMBERED = re.compile(r"(?P<owner>.+)_(?P<kind>ep|af|ac)_\d{8}_(?P<number>\d{8,10})" + _END, re.DOTALL)
_SKILL = re.compile(r"(?P<owner>.+)_skill-(?P<number>\d{1,10})" + _END, re.DOTALL)


class Reference(NamedTuple):
    """What an id stands for: a segment's or turn's number, and its space where that is not the caller's own."""

    number: int
    space_no: int | None


def memory_id(owner: str, kind: Kind, created_ms: int, reference: Reference) -> str:
    """``{owner}_ep_{day of ingestion}_{8 digits}``; numbers in the id count from 1.

    A shared agent's memory from another caller's space ends in ``s`` and the space's number: each space counts its own.
    """
    return f"{owner}_{short_id(kind, created_ms, reference)}"


def short_id(kind: Kind, created_ms: int, reference: Reference) -> str:
    """The id without its owner, as a skill lists its cases."""
    return f"{kind}_{_day(created_ms // _DAY_MS)}_{reference.number + 1:08d}{_space_suffix(reference)}"


def skill_name(reference: Reference) -> str:
    """The skill that a segment founded; its id is ``{agent}_{name}``.

    No word of its cases stands in it: they change as the skill grows, and may be deleted while it stays.
    """
    return f"skill-{reference.number + 1}{_space_suffix(reference)}"


def _space_suffix(reference: Reference) -> str:
    """What ends an id from another space."""
    return "" if reference.space_no is None else f"s{reference.space_no}"


@lru_cache(maxsize=1024)
def _day(day: int) -> str:
    return f"{datetime.fromtimestamp(day * _DAY_MS / 1000, UTC):%Y%m%d}"


def reference_of(identifier: str, kind: Kind, owner: str | None = None) -> Reference | None:
    """The segment or turn behind an id of this kind (and owner), or None for an id of another form."""
    match = _NUMBERED.fullmatch(identifier)
    return _reference(match, owner) if match and match["kind"] == kind else None


def skill_reference(identifier: str, owner: str) -> Reference | None:
    """The founding segment behind the id of a skill of this agent."""
    match = _SKILL.fullmatch(identifier)
    return _reference(match, owner) if match else None


def _reference(match: re.Match[str], owner: str | None) -> Reference | None:
    if owner is not None and match["owner"] != owner:
        return None
    return Reference(int(match["number"]) - 1, int(match["space"]) if match["space"] else None)


def message_id(session_id: str, timestamp_ms: int, number: int) -> str:
    """``m_{session}_{ms}_{3 digits}``."""
    return f"m_{session_id}_{timestamp_ms}_{number:03d}"
