"""From what a client sends to what is stored: checked, trimmed, clamped, completed. No database."""

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec.structs import replace

from memory_gateway.kit.clock import rfc3339
from memory_gateway.kit.errors import InvalidInput, MalformedRequest
from memory_gateway.kit.text import has_nul_or_surrogate
from memory_gateway.memory_service.entries.merging import HIGHEST_IMPORTANCE, united_keywords
from memory_gateway.memory_service.entries.schemas import EntryChanges, MemoryEntry, NewEntry
from memory_gateway.memory_service.entries.sentences import first_sentence
from memory_gateway.memory_service.users import check_user_id

MOST_CONTENT = 200_000
_HIGHEST_PRIORITY = 10
_DEFAULT_PRIORITY = 1
_DEFAULT_IMPORTANCE = 5
_MISSING = "缺少 user_id 或 content"
_Time = Annotated[datetime, msgspec.Meta(tz=True)]


class Draft(msgspec.Struct, frozen=True):
    """A memory as the client means it; whether its summary is ours to make."""

    memory: MemoryEntry
    summary_derived: bool


def draft_of(new: NewEntry) -> Draft:
    """A new memory but for id and times. `MalformedRequest` without user or content, `InvalidInput` naming a field."""
    user_id = check_user_id(new.user_id, missing=_MISSING)
    if new.content is None or not new.content.strip():
        raise MalformedRequest(_MISSING)
    summary = _checked("summary", new.summary or "")
    derived = not summary.strip()
    memory = MemoryEntry(
        id="",
        user_id=user_id,
        content=_checked_content(new.content),
        summary=first_sentence(new.content) if derived else summary,
        category=new.category or "knowledge",
        priority=_clamped(_DEFAULT_PRIORITY if new.priority is None else new.priority, 0, _HIGHEST_PRIORITY),
        importance=_clamped(_DEFAULT_IMPORTANCE if new.importance is None else new.importance, 1, HIGHEST_IMPORTANCE),
        keywords=_keywords(new.keywords or []),
        session_id=_checked("session_id", new.session_id or ""),
        source=new.source or "manual",
        access_count=0,
        last_access="",
        created_at="",
        updated_at="",
        expires_at=_end(new.expires_at),
    )
    return Draft(memory, derived)


def begun(memory: MemoryEntry, now: str) -> MemoryEntry:
    """A new memory with its times."""
    return replace(memory, last_access=now, created_at=now, updated_at=now)


def changed(draft: Draft, changes: EntryChanges, now: str) -> Draft:
    """A stored memory after an update. A summary of ours follows the content."""
    memory, derived = draft.memory, draft.summary_derived
    content = memory.content if changes.content is None else changes.content
    summary = memory.summary
    if changes.summary is not None:
        summary, derived = changes.summary, not changes.summary.strip()
    memory = replace(
        memory,
        content=content,
        summary=first_sentence(content) if derived else summary,
        category=changes.category or memory.category,
        priority=memory.priority if changes.priority is None else _clamped(changes.priority, 0, _HIGHEST_PRIORITY),
        importance=memory.importance
        if changes.importance is None
        else _clamped(changes.importance, 1, HIGHEST_IMPORTANCE),
        keywords=memory.keywords if changes.keywords is None else _keywords(changes.keywords),
        source=changes.source or memory.source,
        updated_at=now,
        expires_at=memory.expires_at if changes.expires_at is msgspec.UNSET else _end(changes.expires_at),
    )
    return Draft(memory, derived)


def check_changes(changes: EntryChanges) -> None:
    """`InvalidInput` for a field that no entry could take."""
    if changes.content is not None and not _checked_content(changes.content).strip():
        raise InvalidInput("must not be blank", field="content")
    _checked("summary", changes.summary or "")
    _keywords(changes.keywords or [])
    if changes.expires_at is not msgspec.UNSET:
        _end(changes.expires_at)


def checked_range(field: str, number: int, lowest: int, highest: int) -> int:
    """The number, or `InvalidInput`."""
    if not lowest <= number <= highest:
        raise InvalidInput(f"must be {lowest}..{highest}", field=field)
    return number


def _checked(field: str, text: str) -> str:
    if has_nul_or_surrogate(text):
        raise InvalidInput("must not hold NUL or lone surrogates", field=field)
    return text


def _checked_content(content: str) -> str:
    if len(content) > MOST_CONTENT:
        raise InvalidInput(f"must have at most {MOST_CONTENT} characters", field="content")
    return _checked("content", content)


def _keywords(keywords: list[str]) -> list[str]:
    for number, keyword in enumerate(keywords):
        _checked(f"keywords.{number}", keyword)
    return united_keywords(keywords)


def _clamped(number: int, lowest: int, highest: int) -> int:
    return max(lowest, min(highest, number))


def _end(text: str | None) -> str | None:
    if not text:
        return None
    try:
        epoch_ms = round(msgspec.convert(text, _Time).timestamp() * 1000)
        return rfc3339(max(epoch_ms, 0))
    except (msgspec.ValidationError, ValueError, OverflowError) as error:
        raise InvalidInput("must be an RFC 3339 time with a zone", field="expires_at") from error
