"""Memory entries as they go over the wire. ``null`` and ``""`` mean the same as leaving a field out.

One exception: ``expires_at: null`` in an update takes the end away.
"""

from typing import Annotated, Literal, get_args

import msgspec
from msgspec import UNSET, UnsetType

Category = Literal["user_preference", "personal_info", "conversation", "knowledge", "event", "task", "relationship"]
Source = Literal["conversation", "manual", "merged", "consolidated"]
Blank = Literal[""]
Limit = Annotated[int, msgspec.Meta(ge=1, le=1000)]

CATEGORIES: tuple[Category, ...] = get_args(Category)
PROTECTED: frozenset[Category] = frozenset({"personal_info", "user_preference"})
"""What decay does not demote and a merge does not turn into something else."""


class MemoryEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One memory. Times are RFC 3339 UTC; ``expires_at`` is left out where there is no end."""

    id: str
    user_id: str
    content: str
    summary: str
    category: Category
    priority: int
    importance: int
    keywords: list[str]
    session_id: str
    source: Source
    access_count: int
    last_access: str
    created_at: str
    updated_at: str
    expires_at: str | None = None


class NewEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``POST /memories``. Priority and importance are clamped, not refused."""

    user_id: str | None = None
    content: str | None = None
    summary: str | None = None
    category: Category | Blank | None = None
    priority: int | None = None
    importance: int | None = None
    keywords: list[str] | None = None
    session_id: str | None = None
    source: Source | Blank | None = None
    expires_at: str | None = None


class EntryChanges(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``PUT /memories/{id}``. A blank ``summary`` is derived from the content again; a blank ``content`` is refused."""

    content: str | None = None
    summary: str | None = None
    category: Category | Blank | None = None
    priority: int | None = None
    importance: int | None = None
    keywords: list[str] | None = None
    source: Source | Blank | None = None
    expires_at: str | UnsetType | None = UNSET


class EntryQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``POST /memories/query``. Without ``query_text`` every entry matches."""

    user_id: str | None = None
    query_text: str | None = None
    category: Category | Blank | None = None
    min_importance: int | None = None
    limit: Limit | None = None


class ConsolidateRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``POST /memories/consolidate``."""

    user_id: str | None = None


class DecayRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``POST /memories/decay``."""

    user_id: str | None = None
    dry_run: bool | None = None


class Saved(msgspec.Struct, frozen=True):
    """What a create came to. ``similarity``: to the entry that absorbed the text, None for a new entry."""

    memory: MemoryEntry
    merged: bool
    similarity: float | None


class EntrySaved(msgspec.Struct, frozen=True, omit_defaults=True):
    """Reply of ``POST /memories``."""

    status: Literal["saved"]
    memory: MemoryEntry
    merged: bool
    similarity: float | None = None


class EntryPage(msgspec.Struct, frozen=True):
    """Reply of ``GET /memories``. ``total`` counts all that match."""

    user_id: str
    memories: list[MemoryEntry]
    total: int


class EntryFound(msgspec.Struct, frozen=True):
    """Reply of ``GET /memories/{id}``."""

    memory: MemoryEntry


class EntryUpdated(msgspec.Struct, frozen=True):
    """Reply of ``PUT /memories/{id}``."""

    status: Literal["updated"]
    memory_id: str


class EntryDeleted(msgspec.Struct, frozen=True):
    """Reply of ``DELETE /memories/{id}``."""

    status: Literal["deleted"]
    memory_id: str


class EntriesMatched(msgspec.Struct, frozen=True):
    """Reply of ``POST /memories/query``. ``total`` counts all that match, equal contents once."""

    user_id: str
    query: str
    memories: list[MemoryEntry]
    total: int


class Consolidated(msgspec.Struct, frozen=True):
    """Reply of ``POST /memories/consolidate``. ``merged``: how many entries are gone into others."""

    status: Literal["consolidated"]
    user_id: str
    merged: int
    message: str = "记忆整理完成"


class Decayed(msgspec.Struct, frozen=True):
    """Reply of ``POST /memories/decay``."""

    status: Literal["decayed"]
    user_id: str
    decayed: int
    deleted: int
    message: str = "记忆衰减完成"


class CategoryCounts(msgspec.Struct, frozen=True):
    """Reply of ``GET /memories/categories``. Categories without entries are left out."""

    user_id: str
    categories: dict[Category, int]
