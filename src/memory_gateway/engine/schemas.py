"""EverOS's request and reply shapes, as observed on a real server: the common language of every upstream."""

from pathlib import Path
from typing import Any, Literal, Protocol

from msgspec import UNSET, Raw, Struct, UnsetType, field

from memory_gateway.storage.port import Transaction

ContentType = Literal["text", "image", "audio", "doc", "pdf", "html", "email"]
Role = Literal["user", "assistant", "tool"]
Method = Literal["keyword", "vector", "hybrid", "agentic"]
MemoryType = Literal["episode", "profile", "agent_case", "agent_skill", "unprocessed_message"]
ListedMemoryType = Literal["episode", "profile", "agent_case", "agent_skill"]
RawItem = dict[str, Any]

MOST_MESSAGES = 500
"""In one request."""


class ContentItem(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag=False):
    """One part of a multimodal message. ``uri`` wins over ``base64``."""

    type: ContentType
    text: str | None = None
    uri: str | None = None
    base64: str | None = None
    ext: str | None = None
    name: str | None = None
    extras: dict[str, Any] | None = None


class FunctionCall(Struct, frozen=True, forbid_unknown_fields=True):
    """``arguments`` is a JSON text, as models write it."""

    name: str
    arguments: str


class ToolCall(Struct, frozen=True, forbid_unknown_fields=True):
    """One call that an assistant message asks for."""

    id: str
    function: FunctionCall
    type: Literal["function"] = "function"


class Message(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One message of a conversation. ``timestamp`` is in epoch milliseconds (below 1e12: seconds, as on EverOS)."""

    sender_id: str
    role: Role
    timestamp: int
    content: str | list[ContentItem]
    sender_name: str | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None


class AddRequest(Struct, frozen=True):
    """``POST memory/add``. ``wire_messages``: the messages as the client wrote them, where there is one."""

    session_id: str
    messages: tuple[Message, ...]
    app_id: str = "default"
    project_id: str = "default"
    wire_messages: Raw | None = None


class FlushRequest(Struct, frozen=True):
    """``POST memory/flush``."""

    session_id: str
    app_id: str = "default"
    project_id: str = "default"


class SearchRequest(Struct, frozen=True, omit_defaults=False):
    """``POST memory/search``. Exactly one of ``user_id`` and ``agent_id`` is set; what is unset is not sent."""

    query: str
    user_id: str | UnsetType = UNSET
    agent_id: str | UnsetType = UNSET
    method: Method = "hybrid"
    top_k: int = -1
    radius: float | UnsetType = UNSET
    min_score: float | UnsetType = UNSET
    include_profile: bool = False
    enable_llm_rerank: bool = False
    app_id: str = "default"
    project_id: str = "default"
    filters: dict[str, Any] | UnsetType = UNSET


class GetRequest(Struct, frozen=True, omit_defaults=False):
    """``POST memory/get``: a page of one kind of memory."""

    memory_type: ListedMemoryType
    user_id: str | UnsetType = UNSET
    agent_id: str | UnsetType = UNSET
    page: int = 1
    page_size: int = 20
    sort_by: Literal["timestamp", "updated_at"] = "timestamp"
    sort_order: Literal["desc", "asc"] = "desc"
    app_id: str = "default"
    project_id: str = "default"
    filters: dict[str, Any] | UnsetType = UNSET


class DocumentNote(Struct, frozen=True):
    """What could not be read of a document, in a sentence without a path. ``readable``: a part of it could."""

    name: str
    readable: bool
    message: str


class AddReply(Struct, frozen=True, omit_defaults=True):
    """``message_count`` counts the request's messages; ``queued`` (202) means the upstream works on it later.

    ``notes`` stay in process: a client's reply has the first two only, as EverOS's.
    """

    message_count: int
    status: Literal["accumulated", "extracted", "queued"]
    notes: tuple[DocumentNote, ...] = ()


class FlushReply(Struct, frozen=True):
    """``no_extraction``: there was nothing to close."""

    status: Literal["extracted", "no_extraction", "queued"]


class SearchReply(Struct, frozen=True):
    """Five arrays of raw items, best first."""

    episodes: list[RawItem] = field(default_factory=list)
    profiles: list[RawItem] = field(default_factory=list)
    agent_cases: list[RawItem] = field(default_factory=list)
    agent_skills: list[RawItem] = field(default_factory=list)
    unprocessed_messages: list[RawItem] = field(default_factory=list)


class GetReply(Struct, frozen=True):
    """``total_count``: all matches; ``count``: those on this page."""

    episodes: list[RawItem] = field(default_factory=list)
    profiles: list[RawItem] = field(default_factory=list)
    agent_cases: list[RawItem] = field(default_factory=list)
    agent_skills: list[RawItem] = field(default_factory=list)
    total_count: int = 0
    count: int = 0


class MemoryKey(Struct, frozen=True):
    """Names one memory inside one app and project."""

    memory_type: MemoryType
    memory_id: str


class Along(Protocol):
    """What a caller writes together with its messages, so that both are stored or neither."""

    async def before(self, transaction: Transaction) -> None:
        """In the first transaction, before any message. What is raised here refuses the messages."""
        ...

    async def after(self, transaction: Transaction) -> None:
        """In the last one, after all of them: mostly the same."""
        ...


class Caller(Struct, frozen=True):
    """Who is behind a request, told in process and never read from a request's body.

    ``user_id`` owns the sessions that are written and bounds what can be read; None is a caller without users
    (a bare engine), where sessions are shared as on EverOS. ``own_files`` maps URIs to files that the gateway
    itself wrote: only those and files under the configured roots are ever opened.
    ``hidden`` memories and every turn they stand on are left out, whatever is made from those turns later;
    ``left_out`` memories are merely not returned; ``hidden_sessions`` are left out whole.
    ``along`` is written with the messages of an add, where the upstream's traits say that it does so.
    """

    user_id: str | None = None
    own_files: dict[str, Path] = field(default_factory=dict)
    hidden: tuple[MemoryKey, ...] = ()
    left_out: frozenset[MemoryKey] = frozenset()
    hidden_sessions: frozenset[str] = frozenset()
    shared_agents: bool = False
    along: Along | None = None
