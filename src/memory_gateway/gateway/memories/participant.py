"""What this room holds on a user, for export and erasure."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec

from memory_gateway.gateway.memories import store
from memory_gateway.gateway.memories.shown import ShownMemories
from memory_gateway.storage.port import Database, Row, Transaction

_MEMORY = ("app_id", "project_id", "memory_type", "memory_id")
_OVERRIDE = (*_MEMORY, "version", "text", "reason", "created_at", "replaced_at", "removed_at")
_EXPORTS = (
    ("session", store.EXPORT_SESSIONS, ("app_id", "project_id", "session_id", "claimed_at")),
    ("tombstone", store.EXPORT_TOMBSTONES, (*_MEMORY, "created_at", "restored_at")),
    ("override", store.EXPORT_OVERRIDES, _OVERRIDE),
    ("shown_memory", store.EXPORT_SHOWN, (*_MEMORY, "session_id", "snapshot", "shown_at")),
    ("idempotency_key", store.EXPORT_KEYS, ("endpoint", "idempotency_key", "expires_at", "status", "reply")),
)
_JSON_TEXTS = ("snapshot", "reply")


class UserRows:
    """Exports and erases the rows of one user.

    ``keep_sessions``: the upstream cannot forget, so the user's sessions stay theirs for ever; else the next user who
    takes a session's name would be given what the upstream still holds of it.
    """

    def __init__(self, database: Database, shown: ShownMemories, *, keep_sessions: bool) -> None:
        self._database = database
        self._shown = shown
        self._keep_sessions = keep_sessions

    async def export(self, user_id: str) -> AsyncIterator[dict[str, Any]]:
        """Sessions, edits, snapshots of shown memories, remembered replies."""
        for kind, statement, names in _EXPORTS:
            for row in await self._rows(statement, user_id):
                yield {"kind": kind, **_decoded(dict(zip(names, row, strict=True)))}

    async def erase(self, user_id: str) -> None:
        """Delete them."""
        self._shown.forget(user_id)

        async def work(transaction: Transaction) -> None:
            await transaction.execute(store.ERASE_KEYS, {"user_id": user_id})
            await transaction.execute(store.ERASE_SHOWN, {"user_id": user_id})
            await transaction.execute(store.ERASE_TOMBSTONES, {"user_id": user_id})
            await transaction.execute(store.ERASE_OVERRIDES, {"user_id": user_id})
            if not self._keep_sessions:
                await transaction.execute(store.ERASE_SESSIONS, {"user_id": user_id})

        await self._database.write(work, owner=user_id)

    async def _rows(self, statement: str, user_id: str) -> list[Row]:
        async def work(transaction: Transaction) -> list[Row]:
            return await transaction.fetch(statement, {"user_id": user_id})

        return await self._database.read(work)


def _decoded(row: dict[str, Any]) -> dict[str, Any]:
    for name in _JSON_TEXTS:
        if row.get(name) is not None:
            row[name] = msgspec.json.decode(row[name])
    return row
