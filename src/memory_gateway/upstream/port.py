"""What the gateway talks to. Two adapters: `embedded` (in process, the default) and `everos` (HTTP)."""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Protocol

from msgspec import Struct, field

from memory_gateway.engine.schemas import (
    AddReply,
    AddRequest,
    Caller,
    FlushReply,
    FlushRequest,
    GetReply,
    GetRequest,
    MemoryKey,
    SearchReply,
    SearchRequest,
)


class UpstreamTraits(Struct, frozen=True):
    """How this upstream differs where the gateway must know.

    ``shares_files``: reads the gateway's files from the same disk (else they travel as base64).
    ``opens_client_uris``: opens ``file://`` and ``http(s)`` URIs that a client sent (so the gateway must check them).
    ``leaves_out_hidden``: honours ``Caller.hidden``, ``left_out`` and ``hidden_sessions`` (else the gateway filters).
    ``stable_ids``: a memory keeps its id when its session is extracted again.
    ``separates_agents``: builds agent cases and skills per session owner.
    ``splits_messages``: takes a long text in one message (else the gateway sends that of a large document as several).
    ``can_erase``: can forget a user.
    ``writes_along``: writes `Caller.along` in the transactions that store the messages (else the gateway claims a
    session before an add and records the add after it, each in a transaction of its own).
    """

    shares_files: bool
    opens_client_uris: bool
    leaves_out_hidden: bool
    stable_ids: bool
    separates_agents: bool
    splits_messages: bool
    can_erase: bool
    writes_along: bool = False


class UpstreamHealth(Struct, frozen=True):
    """``backlog``: turns without a vector yet, or what comes closest; None when unknown."""

    name: str
    healthy: bool
    capabilities: dict[str, bool]
    backlog: int | None = None
    details: dict[str, Any] = field(default_factory=dict)


class Erasure(Struct, frozen=True):
    """What an upstream did with a user's memory. ``remaining`` says in words what it still holds, or is None."""

    erased: bool
    remaining: str | None = None


class Upstream(Protocol):
    """A memory system that extracts and searches.

    Errors: `UpstreamRefused` (it answered with an HTTP error), `UpstreamUnreachable`, `UpstreamTimeout`,
    `StorageUnavailable`.
    """

    @property
    def name(self) -> str: ...

    @property
    def traits(self) -> UpstreamTraits: ...

    async def add(self, request: AddRequest, caller: Caller) -> AddReply: ...

    async def flush(self, request: FlushRequest, caller: Caller) -> FlushReply: ...

    async def search(self, request: SearchRequest, caller: Caller) -> SearchReply: ...

    async def get(self, request: GetRequest, caller: Caller) -> GetReply: ...

    async def seal(self, app_id: str, project_id: str, memory: MemoryKey, caller: Caller) -> None:
        """Close what is still growing under this memory, so that later turns become a memory of their own."""
        ...

    async def within(self, request: SearchRequest, episode_ids: list[str], caller: Caller) -> frozenset[str] | None:
        """Those of the episodes that the request's filters keep; None when this upstream cannot tell."""
        ...

    async def erase(self, user_id: str) -> Erasure:
        """Forget everything that was added by this user, in every app and project."""
        ...

    def export(self, user_id: str, places: Sequence[tuple[str, str]]) -> AsyncIterator[dict[str, Any]]:
        """Everything held on this user, as JSON-ready objects with a ``kind``.

        ``places``: the (app, project) pairs the gateway knows of, for an upstream that cannot tell them itself.
        """
        ...

    async def health(self) -> UpstreamHealth: ...

    async def close(self) -> None: ...
