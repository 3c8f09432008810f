"""The rules of resources: one live resource for the same bytes of a user in an app and project."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from weakref import WeakValueDictionary

from msgspec import structs

from memory_gateway.blobs.port import BlobStore
from memory_gateway.documents.sniff import sniff
from memory_gateway.gateway.attachments.schemas import NewAttachment, resource_session
from memory_gateway.gateway.attachments.service import Attachments
from memory_gateway.gateway.audit.service import Audit
from memory_gateway.gateway.resources import store
from memory_gateway.gateway.resources.content import ByteRange
from memory_gateway.gateway.resources.cursors import cursor_of, position
from memory_gateway.gateway.resources.incoming import IncomingFile
from memory_gateway.gateway.resources.indexing import Indexer, stored_resource
from memory_gateway.gateway.resources.schemas import (
    FOLDER,
    Resource,
    ResourcePage,
    StoredResource,
    UploadFields,
    UploadReply,
)
from memory_gateway.kit.clock import Clock, rfc3339
from memory_gateway.kit.errors import Conflict, InvalidInput, NotFound, StorageUnavailable, UpstreamRefused
from memory_gateway.kit.files import off_loop, safe_name
from memory_gateway.kit.ids import IdMaker
from memory_gateway.storage.few import fetch_few_or_many
from memory_gateway.storage.leases import Leases
from memory_gateway.storage.lists import with_list
from memory_gateway.storage.port import Database, Row, Transaction, UniqueViolation
from memory_gateway.upstream.port import Upstream


class Resources:
    """The table ``user_resources`` and the files under ``{user_id}/resources``.

    `resume` starts the background work, `close` ends it.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        new_id: IdMaker,
        *,
        blobs: BlobStore,
        attachments: Attachments,
        audit: Audit,
        upstream: Upstream,
        leases: Leases,
        max_upload_bytes: int,
        inline_index_bytes: int,
        extraction_timeout: float,
    ) -> None:
        self.max_upload_bytes = max_upload_bytes
        self._database = database
        self._clock = clock
        self._new_id = new_id
        self._blobs = blobs
        self._attachments = attachments
        self._intents = attachments.intents
        self._audit = audit
        self._indexer = Indexer(database, upstream, leases, blobs, extraction_timeout)
        self._inline_index_bytes = inline_index_bytes
        self._locks: WeakValueDictionary[tuple[str, ...], asyncio.Lock] = WeakValueDictionary()

    def resume(self) -> None:
        """At start-up: have what was left unfinished, here or by another process, indexed in the background."""
        self._indexer.wake()

    async def close(self) -> None:
        """Stop background work; unfinished resources are taken up at the next start."""
        await self._indexer.close()

    @asynccontextmanager
    async def receive(self, user_id: str, name: str) -> AsyncIterator[IncomingFile]:
        """A place for a file's bytes. What `keep` did not keep is removed when the block ends, however it ends."""
        resource_id = self._new_id()
        folder = f"{user_id}/{FOLDER}/{resource_id}"
        incoming = IncomingFile(
            self._blobs,
            f"{folder}/{safe_name(name)}",
            user_id=user_id,
            resource_id=resource_id,
            name=name,
            max_bytes=self.max_upload_bytes,
        )
        await self._intents.open(user_id, [folder])
        try:
            yield incoming
        finally:
            try:
                await incoming.close()
            finally:
                if not incoming.kept:
                    await self._intents.abandon(user_id, [folder], twice=incoming.late)

    async def keep(self, incoming: IncomingFile, fields: UploadFields) -> UploadReply:
        """Make the received file a resource, or find the one that has its bytes already.

        Where the store has lost that one's file, it has these bytes from now on.

        Small ones are indexed before this returns; what the upstream refuses is not kept, and its error is raised.
        Bigger ones, those whose text takes several requests, an earlier upload whose indexing failed, and small ones
        of which the upstream may hold a part because it did not answer, are finished in the background.
        """
        if not incoming.size:
            raise InvalidInput("the file is empty", field="file")
        await incoming.finish()
        new = await self._described(incoming, fields)
        identity = (new.user_id, fields.app_id, fields.project_id, new.resource.sha256)
        async with self._locks.setdefault(identity, asyncio.Lock()), AsyncExitStack() as stack:
            await self._mend_twin(new, incoming)
            small = incoming.size <= self._inline_index_bytes
            if small:
                # before the row is there, or another process might take it up
                await stack.enter_async_context(self._indexer.claimed(new.resource.id))
            if twin := await self._record(new):
                if twin.resource.status == "stored":
                    self._indexer.ask_for(twin.resource.id)
                return UploadReply(twin.resource, created=False)
            incoming.kept = True
            resource = await self._index_now(new) if small else new.resource
        if resource.status == "stored":
            self._indexer.wake()
        return UploadReply(resource, created=True)

    async def page(
        self, user_id: str, *, limit: int, cursor: str | None, app_id: str | None, project_id: str | None
    ) -> ResourcePage:
        """The user's live resources, newest first, of all apps and projects unless one is named."""
        before, before_id = position(cursor)
        params = {"user_id": user_id, "before": before, "before_id": before_id, "limit": limit + 1}
        if app_id is None and project_id is None:
            rows = await self._database.fetch(store.PAGE, params)
        else:
            params |= {"app_id": app_id, "project_id": project_id}
            rows = await self._read(store.FILTERED_PAGE, params)
        resources = [Resource(*row) for row in rows[:limit]]
        return ResourcePage(resources, cursor_of(resources[-1]) if len(rows) > limit else None)

    async def get(self, user_id: str, resource_id: str) -> Resource:
        """One resource, deleted or not."""
        return (await self._one(user_id, resource_id)).resource

    async def live(self, user_id: str, resource_id: str) -> StoredResource:
        """One resource, to be read."""
        stored = await self._one(user_id, resource_id)
        if stored.resource.deleted_at is not None:
            raise NotFound
        return stored

    async def content(self, stored: StoredResource, wanted: ByteRange) -> AsyncIterator[bytes]:
        """Its bytes, as they are read."""
        try:
            return await self._blobs.read(stored.key, wanted.first, wanted.last - wanted.first + 1)
        except FileNotFoundError as error:
            raise StorageUnavailable("the file of this resource is missing") from error

    async def delete(self, user_id: str, resource_id: str) -> Resource:
        """Mark it and its mapping deleted. A second time changes nothing."""
        params = {"user_id": user_id, "id": resource_id, "now": rfc3339(self._clock())}

        async def work(transaction: Transaction) -> None:
            if await transaction.execute(store.SOFT_DELETE, params):
                await self._attachments.soft_delete(transaction, user_id, resource_id)
                await self._audit.record_in(transaction, user_id, "delete", "resource", resource_id)

        await self._database.write(work, owner=user_id)
        return await self.get(user_id, resource_id)

    async def restore(self, user_id: str, resource_id: str) -> Resource:
        """Undo a delete; `Conflict` where the same bytes live again under another id."""

        async def work(transaction: Transaction) -> None:
            if await transaction.execute(store.RESTORE, {"user_id": user_id, "id": resource_id}):
                await self._attachments.restore(transaction, user_id, resource_id)
                await self._audit.record_in(transaction, user_id, "restore", "resource", resource_id)

        try:
            await self._database.write(work, owner=user_id)
        except UniqueViolation as error:
            raise Conflict("the same bytes live again under another id") from error
        restored = await self.get(user_id, resource_id)
        if restored.status == "stored":
            self._indexer.ask_for(resource_id)
        return restored

    async def live_sessions(self, user_id: str, app_id: str, project_id: str) -> list[str]:
        """The sessions of live resources, oldest first."""
        params = {"user_id": user_id, "app_id": app_id, "project_id": project_id}
        rows = await fetch_few_or_many(self._database, store.LIVE_SESSIONS, params)
        return [session_id for (session_id,) in rows]

    async def deleted_sessions(self, user_id: str, app_id: str, project_id: str) -> frozenset[str]:
        """The sessions of deleted resources: their memories are not shown."""
        params = {"user_id": user_id, "app_id": app_id, "project_id": project_id}
        rows = await fetch_few_or_many(self._database, store.DELETED_SESSIONS, params)
        return frozenset(session_id for (session_id,) in rows)

    async def by_session(self, user_id: str, session_ids: Sequence[str]) -> dict[str, str]:
        """The live resource behind each session that has one."""
        own = resource_session(user_id, "")
        asked = [session_id.removeprefix(own) for session_id in session_ids if session_id.startswith(own)]
        if not asked:
            return {}
        sql, params = with_list(store.LIVE_IDS, "ids", asked)
        rows = await self._database.fetch(sql, {**params, "user_id": user_id})
        return {resource_session(user_id, resource_id): resource_id for (resource_id,) in rows}

    async def export(self, user_id: str) -> AsyncIterator[dict[str, Any]]:
        """Every resource of the user, deleted ones too."""
        for row in await self._read(store.EXPORT, {"user_id": user_id}):
            stored = stored_resource(row)
            file = f"{FOLDER}/{stored.resource.id}/{stored.stored_name}"
            yield {"kind": "resource", **structs.asdict(stored.resource), "file": file}

    async def erase(self, user_id: str) -> None:
        """Remove the user's rows, and the intents, so that an upload under way cannot be kept any more."""

        async def work(transaction: Transaction) -> None:
            await transaction.execute(store.ERASE, {"user_id": user_id})
            await self._intents.forget_in(transaction, user_id)

        await self._database.write(work, owner=user_id)

    async def _described(self, incoming: IncomingFile, fields: UploadFields) -> StoredResource:
        sniffed = await off_loop(sniff, incoming.head, incoming.name)
        resource = Resource(
            id=incoming.resource_id,
            uri=f"resource://{incoming.resource_id}",
            name=incoming.name,
            title=fields.title,
            content_type=sniffed.content_type,
            mime_type=sniffed.mime_type,
            size=incoming.size,
            sha256=incoming.sha256,
            app_id=fields.app_id,
            project_id=fields.project_id,
            session_id=resource_session(incoming.user_id, incoming.resource_id),
            status="stored",
            error=None,
            created_at=rfc3339(self._clock()),
            deleted_at=None,
        )
        return StoredResource(resource, incoming.user_id, safe_name(incoming.name), self._blobs.uri(incoming.key))

    async def _mend_twin(self, new: StoredResource, incoming: IncomingFile) -> None:
        """Before its row may ask for another try, the live resource with these bytes has its file."""
        row = await self._database.fetch_one(store.TWIN, _params(new))
        if row is not None:
            await incoming.stand_in_for(stored_resource(row).key)

    async def _record(self, new: StoredResource) -> StoredResource | None:
        """Write the resource and its mapping; or return the live one that has its bytes, its mapping ensured."""
        params = _params(new)

        async def work(transaction: Transaction) -> StoredResource | None:
            if row := await transaction.fetch_one(store.TWIN, params):
                return await self._joined(transaction, stored_resource(row))
            await transaction.execute(store.INSERT, params)
            await self._attachments.record_in(transaction, _mapping(new))
            await self._intents.keep_in(transaction, new.user_id, new.folder)
            await self._audit.record_in(transaction, new.user_id, "upload", "resource", new.resource.id)
            return None

        return await self._database.write(work, owner=new.user_id)

    async def _joined(self, transaction: Transaction, twin: StoredResource) -> StoredResource:
        await self._attachments.record_in(transaction, _mapping(twin))
        if twin.resource.status != "failed":
            return twin
        await transaction.execute(store.TRY_AGAIN, {"user_id": twin.user_id, "id": twin.resource.id})
        return structs.replace(twin, resource=structs.replace(twin.resource, status="stored", error=None))

    async def _index_now(self, new: StoredResource) -> Resource:
        try:
            outcome = await self._indexer.index_now(new)
        except (UpstreamRefused, InvalidInput):
            await self._undo(new)
            raise
        if outcome is None:
            return new.resource
        return structs.replace(new.resource, status=outcome.status, error=outcome.error)

    async def _undo(self, new: StoredResource) -> None:
        """The upstream did not take it: it was never here."""

        async def work(transaction: Transaction) -> None:
            await transaction.execute(store.REMOVE, {"user_id": new.user_id, "id": new.resource.id})
            await self._attachments.remove(transaction, new.user_id, new.resource.id)
            await self._intents.doom_in(transaction, new.user_id, new.folder)

        await self._database.write(work, owner=new.user_id)
        await self._intents.remove(new.user_id, new.folder)

    async def _one(self, user_id: str, resource_id: str) -> StoredResource:
        row = await self._database.fetch_one(store.ONE, {"user_id": user_id, "id": resource_id})
        if row is None:
            raise NotFound
        return stored_resource(row)

    async def _read(self, sql: str, params: dict[str, Any]) -> list[Row]:
        async def work(transaction: Transaction) -> list[Row]:
            return await transaction.fetch(sql, params)

        return await self._database.read(work)


def _params(stored: StoredResource) -> dict[str, Any]:
    params = {**structs.asdict(stored), **structs.asdict(stored.resource)}
    del params["resource"]
    return params


def _mapping(stored: StoredResource) -> NewAttachment:
    resource = stored.resource
    return NewAttachment(
        id=resource.id,
        user_id=stored.user_id,
        app_id=resource.app_id,
        project_id=resource.project_id,
        session_id=resource.session_id,
        content_type=resource.content_type,
        name=resource.name,
        internal_uri=stored.internal_uri,
        source="resource_upload",
        created_at=resource.created_at,
        sha256=resource.sha256,
        resource_id=resource.id,
    )
