"""What each user was last shown: the memories that may be edited, each with a snapshot of its item.

A search must not wait for a disk, and mostly shows what it has shown before. So snapshots are gathered here and
written a moment later, all users' together, and only those that are new or changed. Until then they are found in
memory; another process may miss one for that moment, so a miss is looked up again, and where other processes share the
users a few times more: one that is busy may write late.
A user keeps the last 5,000, those of the last minutes and those that are overridden; to edit an older one, search
for it again. What is shown again is written again every few minutes, before another process may count it as old.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from memory_gateway.engine.schemas import MemoryType, RawItem
from memory_gateway.gateway.memories import store
from memory_gateway.gateway.memories.found import Found, MemoryRef
from memory_gateway.gateway.memories.tasks import Tasks
from memory_gateway.kit.clock import Clock, rfc3339
from memory_gateway.kit.errors import NotFound, StorageUnavailable
from memory_gateway.storage.port import Database, Transaction

_logger = logging.getLogger(__name__)

KEPT_PER_USER = 5_000
_SPARED_MS = 600_000
_WRITTEN_AGAIN_MS = _SPARED_MS // 2
_REMEMBERED = 20_000
_WRITE_DELAY_SECONDS = 0.05
_LATE = (4, 8, 16)  # write delays between looks at what a busy process may not have written yet
_WRITTEN_AT_ONCE = 500

_Key = tuple[str, str, str, str, str]


class _Print(NamedTuple):
    """What was noted of a memory, and until when that need not be written again."""

    fingerprint: int
    good_until: int


class ShownMemories:
    """Snapshots of shown memories, by user."""

    def __init__(self, database: Database, clock: Clock, tasks: Tasks, *, has_others: bool = False) -> None:
        self._looks = (0, 2, *_LATE) if has_others else (0, 2)
        self._database = database
        self._clock = clock
        self._tasks = tasks
        self._prints: OrderedDict[_Key, _Print] = OrderedDict()
        self._unwritten: dict[_Key, Found] = {}
        self._writing = False

    def note(self, user_id: str, app_id: str, project_id: str, shown: Iterable[Found]) -> None:
        """Remember that the user was shown these memories."""
        now = self._clock()
        for one in shown:
            key = (user_id, app_id, project_id, one.key.memory_type, one.key.memory_id)
            fingerprint = hash((one.session_id, one.text, one.raw.get("timestamp")))
            known = self._prints.get(key)
            if known is None or known.fingerprint != fingerprint or known.good_until <= now:
                self._prints[key] = _Print(fingerprint, now + _WRITTEN_AGAIN_MS)
                self._unwritten[key] = one
            self._prints.move_to_end(key)
        while len(self._prints) > _REMEMBERED:
            self._prints.popitem(last=False)
        if self._unwritten and not self._writing:
            self._writing = True
            self._tasks.start(self._write_soon())

    async def find(self, user_id: str, ref: MemoryRef) -> RawItem:
        """The snapshot; `NotFound` for a memory this user was never shown, whether it exists or not."""
        for delays in self._looks:
            await asyncio.sleep(delays * _WRITE_DELAY_SECONDS)
            snapshot = await self.snapshot(user_id, ref)
            if snapshot is not None:
                return snapshot
        raise NotFound

    async def snapshot(self, user_id: str, ref: MemoryRef) -> RawItem | None:
        """As `find`, at once, and None for a miss."""
        unwritten = self._unwritten.get((user_id, ref.app_id, ref.project_id, ref.memory_type, ref.memory_id))
        if unwritten is not None:
            return _snapshot(ref.memory_type, unwritten.raw)
        row = await self._database.fetch_one(store.FIND_SHOWN, ref.params(user_id))
        if row is None:
            return None
        item: RawItem = msgspec.json.decode(row[0])
        return item

    async def save_in(self, transaction: Transaction, user_id: str, ref: MemoryRef, snapshot: RawItem) -> None:
        """Write a snapshot now: an override needs it beside itself."""
        await transaction.execute(store.SAVE_SHOWN, self._row(user_id, ref, snapshot))

    def forget(self, user_id: str) -> None:
        """Drop what is in memory on this user."""
        for key in [key for key in self._prints if key[0] == user_id]:
            del self._prints[key]
            self._unwritten.pop(key, None)

    async def _write_soon(self) -> None:
        try:
            while self._unwritten:
                await asyncio.sleep(_WRITE_DELAY_SECONDS)
                batch = dict(list(self._unwritten.items())[:_WRITTEN_AT_ONCE])
                await self._write(batch)
        finally:
            self._writing = False

    async def _write(self, batch: dict[_Key, Found]) -> None:
        """Write these; what cannot be written, for whatever reason, is let go of, and noted when it is shown again."""
        try:
            await self._save([self._row_of(key, one) for key, one in batch.items()])
        except Exception as error:
            fault = None if isinstance(error, StorageUnavailable) else error
            _logger.warning(
                "what users were shown could not be kept: they must search again before they edit", exc_info=fault
            )
            for key in batch:
                self._prints.pop(key, None)
        for key, one in batch.items():
            if self._unwritten.get(key) is one:
                del self._unwritten[key]

    async def _save(self, rows: list[dict[str, Any]]) -> None:
        spared_from = rfc3339(self._clock() - _SPARED_MS)
        users = {row["user_id"] for row in rows}

        async def work(transaction: Transaction) -> None:
            await transaction.execute_many(store.SAVE_SHOWN, rows)
            for user_id in users:
                params = {"user_id": user_id, "newer": KEPT_PER_USER - 1, "spared_from": spared_from}
                await transaction.execute(store.TRIM_SHOWN, params)

        await self._database.write(work, owner=None)

    def _row_of(self, key: _Key, one: Found) -> dict[str, Any]:
        user_id, app_id, project_id, _, memory_id = key
        ref = MemoryRef(app_id, project_id, one.key.memory_type, memory_id)
        return self._row(user_id, ref, _snapshot(one.key.memory_type, one.raw))

    def _row(self, user_id: str, ref: MemoryRef, snapshot: RawItem) -> dict[str, Any]:
        session_id = snapshot.get("session_id")
        return {
            **ref.params(user_id),
            "session_id": session_id if isinstance(session_id, str) else None,
            "snapshot": msgspec.json.encode(snapshot).decode(),
            "shown_at": rfc3339(self._clock()),
        }


def _snapshot(memory_type: MemoryType, raw: RawItem) -> RawItem:
    """The item without what belongs to one query, and without the payloads of its files."""
    snapshot = dict(raw)
    if "score" in snapshot:
        snapshot["score"] = None
    if "atomic_facts" in snapshot:
        snapshot["atomic_facts"] = []
    content = snapshot.get("content")
    if memory_type == "unprocessed_message" and isinstance(content, list):
        snapshot["content"] = [{**item, "base64": None} if "base64" in item else item for item in content]
    return snapshot
