"""What goes in and out of the memories' routes."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from memory_gateway.engine.schemas import FlushReply, MemoryType, Message, Method
from memory_gateway.gateway.attachments.schemas import AttachmentView
from memory_gateway.gateway.bodies import BodyCredentials

Scope = Literal["current_chat", "resources", "all_user_memory"]
HistoryAction = Literal["tombstone", "restore", "override", "override_removed"]
Unit = Annotated[float, Meta(ge=0, le=1)]


class AddMemories(BodyCredentials, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``POST /memories/add``. Exactly one of ``session_id`` and ``conversation_id``."""

    messages: list[Message]
    session_id: str | None = None
    conversation_id: str | None = None
    app_id: str | None = None
    project_id: str | None = None


class FlushMemories(BodyCredentials, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``POST /memories/flush``. Exactly one of ``session_id`` and ``conversation_id``."""

    session_id: str | None = None
    conversation_id: str | None = None
    app_id: str | None = None
    project_id: str | None = None


class SearchMemories(BodyCredentials, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``POST /memories/search``. What is left out or null takes its default, or is not sent to the upstream at all.

    Defaults: ``scope`` all_user_memory, ``method`` hybrid, ``top_k`` 8, ``include_profile`` and
    ``enable_llm_rerank`` true, ``app_id`` and ``project_id`` default. ``top_k`` -1 leaves the number to the upstream.
    """

    query: str
    conversation_id: str | None = None
    scope: Scope | list[Scope] | None = None
    app_id: str | None = None
    project_id: str | None = None
    agent_id: str | None = None
    method: Method | None = None
    top_k: Annotated[int, Meta(ge=-1, le=100)] | None = None
    radius: Unit | None = None
    min_score: Unit | None = None
    include_profile: bool | None = None
    enable_llm_rerank: bool | None = None
    filters: dict[str, Any] | None = None


class OverrideMemory(BodyCredentials, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``PUT /memories/{memory_id}``: the text to show from now on."""

    text: str
    reason: str | None = None


class EditMemory(BodyCredentials, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A body that says nothing but who is calling."""


class Added(Struct, frozen=True):
    """``message_count`` counts the request's messages; ``queued``: the upstream works on them later."""

    message_count: int
    status: Literal["accumulated", "extracted", "queued"]


class AddAnswer(Struct, frozen=True):
    """The upstream's own answer, in its envelope; with status 202 where it is queued."""

    request_id: str | None
    data: Added


class FlushAnswer(Struct, frozen=True):
    """The upstream's own answer, in its envelope; with status 202 where it is queued."""

    request_id: str | None
    data: FlushReply


class MemoryResult(Struct, frozen=True):
    """One memory. ``raw`` is the upstream's item untouched; ``text`` is for reading, and the user's own if overridden.

    ``resource_id`` and ``resource_uri`` are set where the memory comes from one of the user's resources.
    """

    id: str
    memory_type: MemoryType
    session_id: str | None
    text: str
    score: float | None
    source_scope: Scope
    resource_id: str | None
    resource_uri: str | None
    raw: dict[str, Any]
    attachments: list[AttachmentView]
    overridden: bool


class SearchResults(Struct, frozen=True):
    """Best first; what has no score comes last."""

    results: list[MemoryResult]


class OverrideView(Struct, frozen=True):
    """The text that stands in for the upstream's."""

    text: str
    reason: str | None
    version: int
    created_at: str


class EditedMemory(Struct, frozen=True):
    """How a memory stands for its user. ``deleted_at`` is null unless it is deleted."""

    memory_id: str
    memory_type: MemoryType
    app_id: str
    project_id: str
    deleted_at: str | None
    override: OverrideView | None


class HistoryEntry(Struct, frozen=True):
    """One edit. ``text`` and ``reason`` belong to overrides."""

    action: HistoryAction
    at: str
    text: str | None = None
    reason: str | None = None


class MemoryHistory(Struct, frozen=True):
    """Oldest first; empty for a memory that was never edited."""

    memory_id: str
    memory_type: MemoryType
    app_id: str
    project_id: str
    history: list[HistoryEntry]
