"""Which memories fade: the two phases of decay, asked of one entry at one moment."""

from typing import NamedTuple

from memory_gateway.kit.clock import rfc3339
from memory_gateway.memory_service.entries.schemas import PROTECTED, Category

_DAY_MS = 24 * 3600 * 1000
_DEMOTED_AFTER_MS = 30 * _DAY_MS
_DELETED_AFTER_MS = 14 * _DAY_MS
_FEW_ACCESSES = 3
_LOW_IMPORTANCE = 3


class Moment(NamedTuple):
    """One reading of the clock, and the two times before it that matter."""

    now: str
    demoted_before: str
    deleted_before: str


class Idle(NamedTuple):
    """What decay looks at. ``demoted_at``: idle time before it has been charged already."""

    entry_key: int
    category: Category
    priority: int
    importance: int
    access_count: int
    last_access: str
    demoted_at: str | None
    expires_at: str | None


class Verdict(NamedTuple):
    """An entry that is demoted to 0 can be deleted as well."""

    demoted: bool
    deleted: bool


def moment(now_ms: int) -> Moment:
    """The times in text, whose order is that of time."""
    return Moment(rfc3339(now_ms), rfc3339(now_ms - _DEMOTED_AFTER_MS), rfc3339(now_ms - _DELETED_AFTER_MS))


def judge(entry: Idle, at: Moment) -> Verdict:
    """Phase 1, and phase 2 on what phase 1 leaves. What has expired is not demoted, only deleted."""
    if entry.expires_at is not None and entry.expires_at <= at.now:
        return Verdict(demoted=False, deleted=True)
    demoted = _is_demoted(entry, at)
    priority = entry.priority - 1 if demoted else entry.priority
    deleted = priority == 0 and entry.access_count == 0 and entry.last_access < at.deleted_before
    return Verdict(demoted, deleted)


def _is_demoted(entry: Idle, at: Moment) -> bool:
    return (
        entry.access_count < _FEW_ACCESSES
        and max(entry.last_access, entry.demoted_at or "") < at.demoted_before
        and entry.importance < _LOW_IMPORTANCE
        and entry.priority > 0
        and entry.category not in PROTECTED
    )
