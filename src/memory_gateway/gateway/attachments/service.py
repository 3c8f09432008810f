"""The rules of attachments: which files belong to which session, and where files sent as base64 are kept."""

from collections.abc import AsyncIterator, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec import structs

from memory_gateway.blobs.port import BlobStore
from memory_gateway.engine.schemas import ContentItem, Message
from memory_gateway.gateway.attachments import store
from memory_gateway.gateway.attachments.intents import FileIntents
from memory_gateway.gateway.attachments.naming import attachment_name
from memory_gateway.gateway.attachments.payloads import decoded, digest
from memory_gateway.gateway.attachments.schemas import Attachment, NewAttachment, StagedAttachments, resource_session
from memory_gateway.kit.clock import Clock, rfc3339
from memory_gateway.kit.errors import InvalidInput
from memory_gateway.kit.files import off_loop, safe_name
from memory_gateway.kit.ids import IdMaker
from memory_gateway.kit.text import fold_name
from memory_gateway.storage.lists import with_list
from memory_gateway.storage.port import Database, Row, Transaction

FOLDER = "memory_attachments"
MAX_URI_CHARACTERS = 8192
_folded = lru_cache(4096)(fold_name)  # the same names come with every search


class _Session(NamedTuple):
    user_id: str
    app_id: str
    project_id: str
    session_id: str


class _Checked(NamedTuple):
    """A content item that is an attachment; ``sha256`` is None where a URI stands for the file."""

    item: ContentItem
    name: str
    sha256: str | None

    @property
    def identity(self) -> object:
        return (self.sha256, self.name) if self.sha256 else self.item.uri


class _Planned(NamedTuple):
    """A row, and the base64 of the file that it still needs."""

    row: NewAttachment
    base64: str | None


class Attachments:
    """The table ``memory_attachments`` and the files under ``{user_id}/memory_attachments``."""

    def __init__(self, database: Database, clock: Clock, new_id: IdMaker, blobs: BlobStore) -> None:
        self._database = database
        self._clock = clock
        self._new_id = new_id
        self._blobs = blobs
        self.intents = FileIntents(database, clock, blobs)

    async def stage(
        self, user_id: str, app_id: str, project_id: str, session_id: str, messages: Sequence[Message]
    ) -> StagedAttachments:
        """Check these messages' attachments and keep their files; then `commit_in` or `discard` what comes back.

        `InvalidInput` names the item whose base64 or URI is at fault, before anything is written.
        """
        items = list(_attached(messages))
        if not items:
            return StagedAttachments(user_id)
        checked = {one.identity: one for one in await off_loop(_check, items)}
        session = _Session(user_id, app_id, project_id, session_id)
        planned = [await self._plan(session, one) for one in checked.values()]
        staged = StagedAttachments(
            user_id,
            tuple(row for row, _ in planned),
            tuple(_folder(row) for row, base64 in planned if base64 is not None),
        )
        await self._write_files(staged, planned)
        return staged

    async def commit_in(self, transaction: Transaction, staged: StagedAttachments) -> None:
        """Write the rows; once the caller's transaction is on the disk, the files stay.

        A file that another request has stored meanwhile, same bytes and name, is not mapped twice; its folder is
        left to the sweep.
        """
        for row in staged.rows:
            ours = (folder := _folder(row)) in staged.folders
            if ours and await transaction.fetch_one(store.SAME_FILE, structs.asdict(row)):
                await self.intents.doom_in(transaction, row.user_id, folder)
                continue
            await self.record_in(transaction, row)
            if ours:
                await self.intents.keep_in(transaction, row.user_id, folder)

    async def discard(self, staged: StagedAttachments, *, twice: bool = False) -> None:
        """The add failed: remove the files of this call, and only these. ``twice``: as `FileIntents.abandon` says."""
        await self.intents.abandon(staged.user_id, staged.folders, twice=twice)

    async def record_in(self, transaction: Transaction, row: NewAttachment) -> None:
        """Write one mapping; a URI that is mapped again is live again, under its latest name."""
        await transaction.execute(store.WRITE, structs.asdict(row))

    async def soft_delete(self, transaction: Transaction, user_id: str, resource_id: str) -> None:
        """A resource's mapping is no longer shown."""
        params = {"user_id": user_id, "session_id": resource_session(user_id, resource_id)}
        await transaction.execute(store.SOFT_DELETE, {**params, "now": rfc3339(self._clock())})

    async def restore(self, transaction: Transaction, user_id: str, resource_id: str) -> None:
        """A resource's mapping is shown again."""
        params = {"user_id": user_id, "session_id": resource_session(user_id, resource_id)}
        await transaction.execute(store.RESTORE, params)

    async def remove(self, transaction: Transaction, user_id: str, resource_id: str) -> None:
        """A resource never came to be: neither does its mapping."""
        params = {"user_id": user_id, "session_id": resource_session(user_id, resource_id)}
        await transaction.execute(store.REMOVE, params)

    async def for_sessions(
        self, user_id: str, app_id: str, project_id: str, session_ids: Sequence[str]
    ) -> dict[str, list[Attachment]]:
        """The live attachments of the user's sessions, oldest first; sessions without any are left out."""
        found: dict[str, list[Attachment]] = {}
        if not session_ids:
            return found
        sql, params = with_list(store.LIVE_OF_SESSIONS, "session_ids", session_ids)
        params |= {"user_id": user_id, "app_id": app_id, "project_id": project_id}
        for session_id, content_type, name, internal_uri in await self._database.fetch(sql, params):
            attachment = Attachment(session_id, content_type, name, internal_uri, _folded(name))
            found.setdefault(session_id, []).append(attachment)
        return found

    async def backfill(self) -> int:
        """At start-up: map every live resource that has no live mapping; how many those were."""
        return await self._database.write(lambda transaction: transaction.execute(store.BACKFILL), owner=None)

    async def sweep(self) -> int:
        """Remove what expired intents left behind, of adds and of uploads; how many folders that was."""
        return await self.intents.sweep()

    async def close(self) -> None:
        """Stop background work."""
        await self.intents.close()

    async def export(self, user_id: str) -> AsyncIterator[dict[str, Any]]:
        """Every mapping of the user, deleted ones too."""

        async def work(transaction: Transaction) -> list[Row]:
            return await transaction.fetch(store.EXPORT, {"user_id": user_id})

        for row in await self._database.read(work):
            yield {"kind": "attachment", **dict(zip(store.EXPORT_KEYS, row, strict=True))}

    async def erase(self, user_id: str) -> None:
        """Remove the user's rows, and the intents, so that an add under way cannot be kept any more."""

        async def work(transaction: Transaction) -> None:
            await transaction.execute(store.ERASE, {"user_id": user_id})
            await self.intents.forget_in(transaction, user_id)

        await self._database.write(work, owner=user_id)

    async def _plan(self, session: _Session, one: _Checked) -> _Planned:
        row = NewAttachment(
            id=self._new_id(),
            **session._asdict(),
            content_type=one.item.type,
            name=one.name,
            internal_uri=one.item.uri or "",
            source="memory_add_uri",
            created_at=rfc3339(self._clock()),
            sha256=one.sha256,
        )
        if one.sha256 is None:
            return _Planned(row, None)
        if twin := await self._database.fetch_one(store.SAME_FILE, structs.asdict(row)):
            return _Planned(structs.replace(row, id=twin[0], internal_uri=twin[1], source="memory_add_base64"), None)
        uri = self._blobs.uri(_key(row))
        return _Planned(structs.replace(row, internal_uri=uri, source="memory_add_base64"), one.item.base64)

    async def _write_files(self, staged: StagedAttachments, planned: list[_Planned]) -> None:
        if not staged.folders:
            return
        await self.intents.open(staged.user_id, staged.folders)
        try:
            await self._blobs.put({_key(row): decoded(base64) for row, base64 in planned if base64 is not None})
        except BaseException:
            await self.discard(staged, twice=self._blobs.late)
            raise


def _folder(row: NewAttachment) -> str:
    return f"{row.user_id}/{FOLDER}/{row.id}"


def _key(row: NewAttachment) -> str:
    return f"{_folder(row)}/{safe_name(row.name, 'attachment')}"


def _attached(messages: Sequence[Message]) -> Iterator[tuple[str, ContentItem]]:
    """The content items that stand for a file, each with the place of its field."""
    for index, message in enumerate(messages):
        if not isinstance(message.content, str):
            for number, item in enumerate(message.content):
                if item.uri or item.base64 is not None:
                    yield f"messages.{index}.content.{number}", item


def _check(items: list[tuple[str, ContentItem]]) -> list[_Checked]:
    return [_Checked(item, attachment_name(item), _digest(place, item)) for place, item in items]


def _digest(place: str, item: ContentItem) -> str | None:
    if item.uri:
        if len(item.uri) > MAX_URI_CHARACTERS:
            raise InvalidInput(f"at most {MAX_URI_CHARACTERS} characters", field=f"{place}.uri")
        return None
    try:
        return digest(item.base64 or "")
    except ValueError as error:
        raise InvalidInput("not valid base64 (padded, without line breaks)", field=f"{place}.base64") from error
