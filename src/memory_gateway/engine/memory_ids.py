"""Ids in EverOS's form. The number at the end is the segment's or turn's own, so an id leads back without a look-up."""

import re
from datetime import UTC, datetime
from typing import Literal

Kind = Literal["ep", "af", "ac"]
_NUMBERED = re.compile(r"(?P<owner>.+)_(?P<kind>ep|af|ac)_(?P<day>\d{8})_(?P<number>\d{8,10})", re.DOTALL)
_SKILL = re.compile(r".*-(?P<number>\d{1,10})", re.DOTALL)


def memory_id(owner: str, kind: Kind, created_ms: int, number: int) -> str:
    """``{owner}_ep_{day of ingestion}_{8 digits}``; numbers in the id count from 1."""
    return f"{owner}_{short_id(kind, created_ms, number)}"


def short_id(kind: Kind, created_ms: int, number: int) -> str:
    """The id without its owner, as a skill lists its cases."""
    return f"{kind}_{datetime.fromtimestamp(created_ms / 1000, UTC):%Y%m%d}_{number + 1:08d}"


def number_of(identifier: str, kind: Kind) -> int | None:
    """The segment or turn behind an id of this kind, or None for an id of another form."""
    match = _NUMBERED.fullmatch(identifier)
    return int(match["number"]) - 1 if match and match["kind"] == kind else None


def skill_number(name: str) -> int | None:
    """The founding segment behind a skill's id."""
    match = _SKILL.fullmatch(name)
    return int(match["number"]) - 1 if match else None


def message_id(session_id: str, timestamp_ms: int, number: int) -> str:
    """``m_{session}_{ms}_{3 digits}``."""
    return f"m_{session_id}_{timestamp_ms}_{number:03d}"
