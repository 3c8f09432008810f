"""The room's one front: adding, searching and editing memories for users who never meet."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from msgspec import Raw, Struct

from memory_gateway.engine.schemas import AddReply, FlushReply
from memory_gateway.gateway.accounts.service import Accounts
from memory_gateway.gateway.attachments.service import Attachments
from memory_gateway.gateway.audit.service import Audit
from memory_gateway.gateway.memories.edits import Edits
from memory_gateway.gateway.memories.found import MemoryRef
from memory_gateway.gateway.memories.idempotency import Idempotency, StoredReply, keyed_request
from memory_gateway.gateway.memories.intake import Intake
from memory_gateway.gateway.memories.ownership import Sessions
from memory_gateway.gateway.memories.participant import UserRows
from memory_gateway.gateway.memories.schemas import (
    AddMemories,
    EditedMemory,
    FlushMemories,
    MemoryHistory,
    SearchMemories,
    SearchResults,
)
from memory_gateway.gateway.memories.search import Search
from memory_gateway.gateway.memories.shown import ShownMemories
from memory_gateway.gateway.memories.tasks import Tasks, outcome
from memory_gateway.gateway.memories.uris import UriPolicy
from memory_gateway.gateway.resources.service import Resources
from memory_gateway.kit.clock import Clock
from memory_gateway.kit.files import off_loop
from memory_gateway.kit.ids import IdMaker
from memory_gateway.storage.port import Database
from memory_gateway.upstream.port import Upstream

_HASHED_AT_ONCE = 1 << 18


class MemoryRules(Struct, frozen=True, kw_only=True):
    """The settings of this room, by their names. ``data_dir`` holds what no client's URI may point at.

    ``has_others``: other processes serve the same users.
    """

    data_dir: Path
    allowed_file_roots: tuple[Path, ...] = ()
    allowed_uri_hosts: tuple[str, ...] = ()
    allow_other_senders: bool = False
    shared_agents: bool = False
    resource_batch: int = 100
    has_others: bool = False


class Memories:
    """`close` waits for work under way: call it before the database and the upstream are closed."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        new_id: IdMaker,
        upstream: Upstream,
        accounts: Accounts,
        attachments: Attachments,
        resources: Resources,
        audit: Audit,
        rules: MemoryRules,
    ) -> None:
        self._tasks = Tasks()
        self._idempotency = Idempotency(database, clock, new_id, self._tasks)
        sessions = Sessions(database, clock)
        shown = ShownMemories(database, clock, self._tasks, has_others=rules.has_others)
        self._intake = Intake(
            database=database,
            upstream=upstream,
            accounts=accounts,
            attachments=attachments,
            audit=audit,
            sessions=sessions,
            uri_policy=UriPolicy(rules.allowed_file_roots, rules.allowed_uri_hosts, rules.data_dir),
            allow_other_senders=rules.allow_other_senders,
        )
        self._edits = Edits(database, clock, upstream, audit, shown)
        self._search = Search(
            upstream=upstream,
            sessions=sessions,
            edits=self._edits,
            shown=shown,
            attachments=attachments,
            resources=resources,
            shared_agents=rules.shared_agents,
            resource_batch=rules.resource_batch,
        )
        self._rows = UserRows(database, shown, keep_sessions=not upstream.traits.can_erase)

    async def once(
        self, user_id: str, endpoint: str, key: str | None, body: bytes, work: Callable[[], Awaitable[StoredReply]]
    ) -> StoredReply:
        """Do the work to its end, even when the client goes away; with a key, once for all requests that carry it."""
        if key is not None:
            long = len(body) > _HASHED_AT_ONCE
            of = (user_id, endpoint, key, body)
            request = await off_loop(keyed_request, *of) if long else keyed_request(*of)
            return await self._idempotency.once(request, work)

        async def unkeyed() -> StoredReply:
            return await work()

        return await outcome(self._tasks.start(unkeyed()))

    async def add(self, user_id: str, body: AddMemories, wire_messages: Raw | None = None) -> AddReply:
        """Hand messages to the upstream, which gets them as the client wrote them: ``wire_messages``."""
        return await self._intake.add(user_id, body, wire_messages)

    async def flush(self, user_id: str, body: FlushMemories) -> FlushReply:
        """Close what is still open of a session."""
        return await self._intake.flush(user_id, body)

    async def search(self, user_id: str, body: SearchMemories) -> SearchResults:
        """The user's memories that match, best first."""
        return await self._search.search(user_id, body)

    async def delete(self, user_id: str, ref: MemoryRef) -> EditedMemory:
        """Never show this memory again."""
        return await self._edits.delete(user_id, ref)

    async def restore(self, user_id: str, ref: MemoryRef) -> EditedMemory:
        """Show a deleted memory again."""
        return await self._edits.restore(user_id, ref)

    async def override(self, user_id: str, ref: MemoryRef, text: str, reason: str | None) -> EditedMemory:
        """Show this text instead of the upstream's."""
        return await self._edits.override(user_id, ref, text, reason)

    async def remove_override(self, user_id: str, ref: MemoryRef) -> EditedMemory:
        """Show the upstream's text again."""
        return await self._edits.remove_override(user_id, ref)

    async def history(self, user_id: str, ref: MemoryRef) -> MemoryHistory:
        """Every edit of a memory."""
        return await self._edits.history(user_id, ref)

    def export(self, user_id: str) -> AsyncIterator[dict[str, Any]]:
        """Every row of this user."""
        return self._rows.export(user_id)

    async def erase(self, user_id: str) -> None:
        """Delete every row of this user."""
        await self._rows.erase(user_id)

    async def sweep(self) -> int:
        """Drop what is remembered of requests whose idempotency keys have run out; how many those were."""
        return await self._idempotency.sweep()

    async def close(self) -> None:
        """Wait for what clients asked for, whether or not they still wait."""
        await self._tasks.close()
