"""Accounts: who may come in. A key is shown once; only its keyed hash is stored."""

import hmac
from collections.abc import AsyncIterator
from typing import Any

from memory_gateway.gateway.accounts import store
from memory_gateway.gateway.accounts.keys import key_hash, new_user_key
from memory_gateway.gateway.accounts.schemas import NewUser, User
from memory_gateway.gateway.accounts.user_ids import check_user_id, is_user_id
from memory_gateway.gateway.audit.service import ADMIN, Audit
from memory_gateway.kit.clock import Clock, rfc3339
from memory_gateway.kit.errors import Conflict, NotFound, Unauthorized
from memory_gateway.kit.text import fold_name
from memory_gateway.storage.port import Database, Row, Transaction

_NO_HASH = "0" * 64


class Accounts:
    """Registers users, gives out their keys and checks them."""

    def __init__(self, database: Database, clock: Clock, key_secret: bytes) -> None:
        self._database = database
        self._clock = clock
        self._key_secret = key_secret
        self._audit = Audit(database, clock)

    async def create(self, user_id: str) -> NewUser:
        """Register a user. `InvalidInput` for an id that breaks the rule, `Conflict` for one that is taken.

        Ids that differ in case alone count as the same; an erased user's id stays taken.
        """
        check_user_id(user_id)
        new_user = NewUser(user_id, new_user_key(), rfc3339(self._clock()))
        row = {"user_id": user_id, "folded_id": fold_name(user_id), "created_at": new_user.created_at}

        async def work(transaction: Transaction) -> None:
            if await transaction.execute(store.TAKE_NAME, row) == 0:
                raise Conflict("this user id is taken")
            await transaction.execute(store.INSERT_USER, row)
            await self._insert_key(transaction, new_user)
            await self._audit.record_in(transaction, ADMIN, "create", "user", user_id)

        await self._database.write(work, owner=user_id)
        return new_user

    async def rotate(self, user_id: str, grace_seconds: int = 0, *, by: str | None = None) -> NewUser:
        """A new key; the old ones stop now, or after the grace. `NotFound` for an unknown or erased user.

        ``by`` is who asked, for the audit log: the user unless said otherwise.
        """
        now = self._clock()
        new_user = NewUser(user_id, new_user_key(), rfc3339(now))
        stop = {"user_id": user_id, "stops_at": rfc3339(now + grace_seconds * 1000)}

        async def work(transaction: Transaction) -> None:
            if not _is_alive(await transaction.fetch_one(store.FIND_USER, {"user_id": user_id})):
                raise NotFound
            await transaction.execute(store.STOP_KEYS, stop)
            await transaction.execute(store.DELETE_STOPPED_KEYS, {"user_id": user_id, "now": new_user.created_at})
            await self._insert_key(transaction, new_user)
            await self._audit.record_in(transaction, by or user_id, "rotate_key", "user", user_id)

        await self._database.write(work, owner=user_id)
        return new_user

    async def authenticate(self, user_id: str | None, user_key: str | None, *, while_erasing: bool = False) -> str:
        """The user's id. `Unauthorized` unless the key is this user's and alive: one answer at one cost for all faults.

        ``while_erasing`` also accepts the key of a user whose erasure has begun and not ended, to ask for it again.
        """
        claimed = user_id if user_id is not None and is_user_id(user_id) else ""
        presented = key_hash(user_key or "", self._key_secret)
        row = await self._database.fetch_one(store.FIND_KEY, {"user_id": claimed, "key_hash": presented})
        stored, stops_at, closed_at = row or (_NO_HASH, None, None)
        if not hmac.compare_digest(stored, presented):
            raise Unauthorized
        if stops_at is not None and stops_at <= rfc3339(self._clock()):
            raise Unauthorized
        if closed_at is not None and not while_erasing:
            raise Unauthorized
        return claimed

    async def exists(self, user_id: str) -> bool:
        """True for a registered user that is not erased."""
        return _is_alive(await self._database.fetch_one(store.FIND_USER, {"user_id": user_id}))

    async def is_taken(self, user_id: str) -> bool:
        """True for an id that no new user can get: a user's, an erased one's, or one that differs in case alone."""
        row = await self._database.fetch_one(store.FIND_TAKEN_ID, {"folded_id": fold_name(user_id)})
        return row is not None

    async def list_users(self) -> list[User]:
        """Every account, the erased ones too, by id."""

        async def work(transaction: Transaction) -> list[Row]:
            return await transaction.fetch(store.LIST_USERS)

        return [User(*row) for row in await self._database.read(work)]

    async def export(self, user_id: str) -> AsyncIterator[dict[str, Any]]:
        """The account and when its keys were made; their hashes are the gateway's secret."""
        for _, created_at, erased_at in await self._database.fetch(store.FIND_USER, {"user_id": user_id}):
            yield {"kind": "account", "user_id": user_id, "created_at": created_at, "erased_at": erased_at}
        for created_at, stops_at in await self._database.fetch(store.LIST_KEYS, {"user_id": user_id}):
            yield {"kind": "key", "created_at": created_at, "stops_at": stops_at}

    async def _insert_key(self, transaction: Transaction, new_user: NewUser) -> None:
        row = {
            "user_id": new_user.user_id,
            "key_hash": key_hash(new_user.user_key, self._key_secret),
            "created_at": new_user.created_at,
        }
        await transaction.execute(store.INSERT_KEY, row)


def _is_alive(row: Row | None) -> bool:
    return row is not None and row[2] is None
