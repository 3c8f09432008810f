"""The audit log: who did what to which object. Never contents, never keys.

It outlives the user: an erasure keeps the rows (when what kind of act took place) and blanks the ids of the objects,
which may be words of the user's own, such as a session's name.
"""

from collections.abc import AsyncIterator
from typing import Any

from memory_gateway.gateway.audit import store
from memory_gateway.kit.clock import Clock, rfc3339
from memory_gateway.kit.http_request_id import current_request_id
from memory_gateway.kit.ids import uuid7_id
from memory_gateway.storage.port import Database, Row, Transaction

ADMIN = "(admin)"
"""Stands for the admin where a user's id would stand; no user id holds a parenthesis."""


class Audit:
    """Writes the log. `record_in` inside the transaction of the act itself, so that both happen or neither."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def record_in(
        self, transaction: Transaction, user_id: str, action: str, object_type: str, object_id: str
    ) -> None:
        """Log an act, e.g. ``("ann", "delete", "resource", resource_id)``; the request id is added here."""
        await transaction.execute(
            store.INSERT,
            {
                "id": uuid7_id(),
                "user_id": user_id,
                "at": rfc3339(self._clock()),
                "action": action,
                "object_type": object_type,
                "object_id": object_id,
                "request_id": current_request_id(),
            },
        )

    async def record(self, user_id: str, action: str, object_type: str, object_id: str) -> None:
        """As `record_in`, for an act that has no transaction of its own."""

        async def work(transaction: Transaction) -> None:
            await self.record_in(transaction, user_id, action, object_type, object_id)

        await self._database.write(work, owner=user_id)

    async def export(self, user_id: str) -> AsyncIterator[dict[str, Any]]:
        """The user's own acts, oldest first."""

        async def work(transaction: Transaction) -> list[Row]:
            return await transaction.fetch(store.OF_USER, {"user_id": user_id})

        names = ("at", "action", "object_type", "object_id", "request_id")
        for row in await self._database.read(work):
            yield {"kind": "audit", **dict(zip(names, row, strict=True))}

    async def erase(self, user_id: str) -> None:
        """Blank what the user's acts were done to."""

        async def work(transaction: Transaction) -> None:
            await transaction.execute(store.FORGET_OBJECTS, {"user_id": user_id})

        await self._database.write(work, owner=user_id)
