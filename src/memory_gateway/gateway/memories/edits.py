"""Tombstones and overrides: what a user changes about the memories shown to them, for themselves alone."""

from msgspec import Struct

from memory_gateway.engine.schemas import Caller, MemoryKey
from memory_gateway.gateway.audit.service import Audit
from memory_gateway.gateway.memories import store
from memory_gateway.gateway.memories.found import MemoryRef
from memory_gateway.gateway.memories.overrides import Override
from memory_gateway.gateway.memories.schemas import EditedMemory, HistoryEntry, MemoryHistory, OverrideView
from memory_gateway.gateway.memories.shown import ShownMemories
from memory_gateway.gateway.memories.texts import text_of
from memory_gateway.gateway.memories.visibility import content_hash
from memory_gateway.kit.clock import Clock, rfc3339
from memory_gateway.kit.errors import Conflict, InvalidInput
from memory_gateway.storage.few import fetch_few_or_many
from memory_gateway.storage.port import Database, Transaction
from memory_gateway.upstream.port import Upstream

MAX_TEXT = 20_000
MAX_REASON = 1_000


class ActiveEdits(Struct, frozen=True):
    """``deleted``: with the hash of what each of them held, for an upstream whose ids change."""

    deleted: dict[MemoryKey, str]
    overrides: dict[MemoryKey, Override]


class Edits:
    """Every call asks for a memory that the user was shown; of any other it says `NotFound`, whether it exists or not.

    All of them may be repeated: what is done already changes nothing and is not written to the history again.
    """

    def __init__(
        self, database: Database, clock: Clock, upstream: Upstream, audit: Audit, shown: ShownMemories
    ) -> None:
        self._database = database
        self._clock = clock
        self._upstream = upstream
        self._audit = audit
        self._shown = shown

    async def delete(self, user_id: str, ref: MemoryRef) -> EditedMemory:
        """Never show this memory again.

        An open memory is closed first, so that it covers what was seen of it and words said later are not lost.
        """
        if (state := await self._state_in(self._database, user_id, ref)).deleted_at is not None:
            return state
        snapshot = await self._shown.find(user_id, ref)
        key = MemoryKey(ref.memory_type, ref.memory_id)
        await self._upstream.seal(ref.app_id, ref.project_id, key, Caller(user_id=user_id))

        async def work(transaction: Transaction) -> EditedMemory:
            content = content_hash(ref.memory_type, snapshot, text_of(ref.memory_type, snapshot))
            params = {**self._params(user_id, ref), "content_hash": content}
            if await transaction.execute(store.ADD_TOMBSTONE, params):
                await self._audit.record_in(transaction, user_id, "delete", "memory", ref.memory_id)
            return await self._state_in(transaction, user_id, ref)

        return await self._database.write(work, owner=user_id)

    async def restore(self, user_id: str, ref: MemoryRef) -> EditedMemory:
        """Show a deleted memory again."""
        return await self._change(user_id, ref, store.LIFT_TOMBSTONE, "restore")

    async def override(self, user_id: str, ref: MemoryRef, text: str, reason: str | None) -> EditedMemory:
        """Show this text from now on; earlier texts are kept. `Conflict` for a deleted memory."""
        _check_text(text, reason)
        snapshot = await self._shown.find(user_id, ref)
        # what is said from now on is another memory: this text does not stand for it
        key = MemoryKey(ref.memory_type, ref.memory_id)
        await self._upstream.seal(ref.app_id, ref.project_id, key, Caller(user_id=user_id))

        async def work(transaction: Transaction) -> EditedMemory:
            params = self._params(user_id, ref)
            state = await self._state_in(transaction, user_id, ref)
            if state.deleted_at is not None:
                raise Conflict("this memory is deleted: restore it first")
            if state.override is not None and (state.override.text, state.override.reason) == (text, reason):
                return state
            await transaction.execute(store.REPLACE_OVERRIDE, params)
            words = {"session_id": snapshot.get("session_id"), "text": text, "reason": reason}
            await transaction.execute(store.ADD_OVERRIDE, {**params, **words})
            await self._shown.save_in(transaction, user_id, ref, snapshot)
            await self._audit.record_in(transaction, user_id, "override", "memory", ref.memory_id)
            return await self._state_in(transaction, user_id, ref)

        return await self._database.write(work, owner=user_id)

    async def remove_override(self, user_id: str, ref: MemoryRef) -> EditedMemory:
        """Show the upstream's text again."""
        return await self._change(user_id, ref, store.REMOVE_OVERRIDE, "remove_override")

    async def history(self, user_id: str, ref: MemoryRef) -> MemoryHistory:
        """Every edit of this memory, oldest first."""
        await self._require_known(user_id, ref)
        params = ref.params(user_id)
        entries: list[HistoryEntry] = []
        for created_at, removed_at, text, reason in await self._database.fetch(store.OVERRIDES_OF_MEMORY, params):
            entries.append(HistoryEntry("override", created_at, text, reason))
            if removed_at is not None:
                entries.append(HistoryEntry("override_removed", removed_at))
        for created_at, restored_at in await self._database.fetch(store.TOMBSTONES_OF_MEMORY, params):
            entries.append(HistoryEntry("tombstone", created_at))
            if restored_at is not None:
                entries.append(HistoryEntry("restore", restored_at))
        entries.sort(key=lambda entry: entry.at)
        return MemoryHistory(ref.memory_id, ref.memory_type, ref.app_id, ref.project_id, entries)

    async def active(self, user_id: str, app_id: str, project_id: str) -> ActiveEdits:
        """What the user has changed here and not changed back."""
        place = {"user_id": user_id, "app_id": app_id, "project_id": project_id}
        deleted: dict[MemoryKey, str] = {}
        overrides: dict[MemoryKey, Override] = {}
        for memory_type, memory_id, content, text, session_id in await fetch_few_or_many(
            self._database, store.ACTIVE_EDITS, place
        ):
            key = MemoryKey(memory_type, memory_id)
            if text is None:
                deleted[key] = content
            else:
                overrides[key] = Override(key, text, session_id)
        return ActiveEdits(deleted, overrides)

    async def _change(self, user_id: str, ref: MemoryRef, statement: str, action: str) -> EditedMemory:
        await self._require_known(user_id, ref)

        async def work(transaction: Transaction) -> EditedMemory:
            if await transaction.execute(statement, self._params(user_id, ref)):
                await self._audit.record_in(transaction, user_id, action, "memory", ref.memory_id)
            return await self._state_in(transaction, user_id, ref)

        return await self._database.write(work, owner=user_id)

    async def _require_known(self, user_id: str, ref: MemoryRef) -> None:
        """A memory that was edited once stays known, however long ago it was shown."""
        if await self._database.fetch_one(store.HAS_HISTORY, ref.params(user_id)) is None:
            await self._shown.find(user_id, ref)

    async def _state_in(self, source: Transaction | Database, user_id: str, ref: MemoryRef) -> EditedMemory:
        tombstone = await source.fetch_one(store.ACTIVE_TOMBSTONE, ref.params(user_id))
        override = await source.fetch_one(store.ACTIVE_OVERRIDE, ref.params(user_id))
        return EditedMemory(
            ref.memory_id,
            ref.memory_type,
            ref.app_id,
            ref.project_id,
            None if tombstone is None else tombstone[0],
            None if override is None else OverrideView(*override),
        )

    def _params(self, user_id: str, ref: MemoryRef) -> dict[str, object]:
        """Made in the transaction, so that the history tells edits in the order in which they were done."""
        return {**ref.params(user_id), "now": rfc3339(self._clock())}


def _check_text(text: str, reason: str | None) -> None:
    if not text.strip():
        raise InvalidInput("must not be blank", field="text")
    if len(text) > MAX_TEXT:
        raise InvalidInput(f"must have at most {MAX_TEXT:,} characters", field="text")
    if reason is not None and len(reason) > MAX_REASON:
        raise InvalidInput(f"must have at most {MAX_REASON:,} characters", field="reason")
