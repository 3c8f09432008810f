"""The same key and body within a day give the first answer, without a second call of the upstream.

In one process a repeated request joins the running one and shares its outcome. Between processes the row is polled;
its holder renews it, so a holder that died is taken over within seconds. Failures are not remembered.
"""

import asyncio
import hashlib
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from msgspec import Struct

from memory_gateway.gateway.memories import store
from memory_gateway.gateway.memories.tasks import Tasks, outcome
from memory_gateway.kit.clock import Clock, rfc3339
from memory_gateway.kit.errors import Conflict, InvalidInput, StorageUnavailable
from memory_gateway.kit.ids import IdMaker
from memory_gateway.storage.port import Database, Transaction

_logger = logging.getLogger(__name__)

HEADER = "Idempotency-Key"
_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_CREDENTIALS = ("user_id", "user_key")
_DEFAULTS = {"app_id": "default", "project_id": "default"}
_REMEMBERED_MS = 24 * 3_600_000
_HELD_MS = 15_000
_RENEW_SECONDS = 5.0
_POLL_SECONDS = 0.05


class StoredReply(Struct, frozen=True):
    """An answer as it went out, to the byte."""

    status: int
    body: bytes


class KeyedRequest(Struct, frozen=True):
    """A request that may come again. ``body_hash`` is over the canonical body without credentials, and without the
    fields that say what leaving them out says."""

    user_id: str
    endpoint: str
    key: str
    body_hash: str

    @property
    def slot(self) -> tuple[str, str, str]:
        return (self.user_id, self.endpoint, self.key)

    def params(self, **more: Any) -> dict[str, Any]:
        return {"user_id": self.user_id, "endpoint": self.endpoint, "key": self.key, **more}


def keyed_request(user_id: str, endpoint: str, key: str, body: bytes) -> KeyedRequest:
    """``body`` is a JSON object. `InvalidInput` for a key that is not 1 to 255 visible ASCII characters."""
    if not _KEY.fullmatch(key):
        raise InvalidInput("must be 1 to 255 visible ASCII characters", field=HEADER)
    content = {
        name: value
        for name, value in msgspec.json.decode(body).items()
        if name not in _CREDENTIALS and value is not None and value != _DEFAULTS.get(name)
    }
    canonical = msgspec.json.encode(content, order="deterministic")
    return KeyedRequest(user_id, endpoint, key, hashlib.sha256(canonical).hexdigest())


class Idempotency:
    """Runs a piece of work once for each key."""

    def __init__(self, database: Database, clock: Clock, new_id: IdMaker, tasks: Tasks) -> None:
        self._database = database
        self._clock = clock
        self._new_id = new_id
        self._tasks = tasks
        self._running: dict[tuple[str, str, str], tuple[str, asyncio.Task[StoredReply]]] = {}

    async def once(self, request: KeyedRequest, work: Callable[[], Awaitable[StoredReply]]) -> StoredReply:
        """The work's reply, or the reply of the request that came first; `Conflict` when that one was different."""
        running = self._running.get(request.slot)
        if running is None:
            task = self._tasks.start(self._attempt(request, work))
            self._running[request.slot] = (request.body_hash, task)
            task.add_done_callback(lambda _: self._running.pop(request.slot))
            return await outcome(task)
        body_hash, task = running
        _refuse_other_body(request, body_hash)
        return await outcome(task)

    async def sweep(self) -> int:
        """Drop the keys whose day is over; how many those were."""
        params = {"now": self._in(0)}
        return await self._database.write(
            lambda transaction: transaction.execute(store.DROP_EXPIRED_KEYS, params), owner=None
        )

    async def _attempt(self, request: KeyedRequest, work: Callable[[], Awaitable[StoredReply]]) -> StoredReply:
        holder = self._new_id()
        while True:
            stored, held = await self._look(request)
            if stored is not None:
                return stored
            if not held and await self._hold(request, holder):
                break
            await asyncio.sleep(_POLL_SECONDS)
        return await self._run(request, holder, work)

    async def _run(self, request: KeyedRequest, holder: str, work: Callable[[], Awaitable[StoredReply]]) -> StoredReply:
        try:
            async with self._renewed(request, holder):
                reply = await work()
        except BaseException:
            await self._try_write(store.FORGET_KEY, request.params(holder=holder))
            raise
        params = {"status": reply.status, "reply": reply.body.decode(), "expires_at": self._in(_REMEMBERED_MS)}
        await self._try_write(store.REMEMBER_REPLY, request.params(holder=holder, **params))
        return reply

    async def _look(self, request: KeyedRequest) -> tuple[StoredReply | None, bool]:
        """What is stored, and whether somebody is at work on it."""
        row = await self._database.fetch_one(store.FIND_REPLY, request.params(now=self._in(0)))
        if row is None:
            return None, False
        body_hash, held_until, status, reply = row
        held = status is None and held_until > self._in(0)
        if held or status is not None:
            _refuse_other_body(request, body_hash)
        return (None if status is None else StoredReply(status, reply.encode())), held

    async def _hold(self, request: KeyedRequest, holder: str) -> bool:
        times = {"now": self._in(0), "held_until": self._in(_HELD_MS), "expires_at": self._in(_REMEMBERED_MS)}

        async def work(transaction: Transaction) -> bool:
            params = request.params(holder=holder, body_hash=request.body_hash, **times)
            return await transaction.execute(store.HOLD_KEY, params) == 1

        return await self._database.write(work, owner=request.user_id)

    @asynccontextmanager
    async def _renewed(self, request: KeyedRequest, holder: str) -> AsyncIterator[None]:
        renewing = asyncio.create_task(self._renew(request, holder))
        try:
            yield
        finally:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)

    async def _renew(self, request: KeyedRequest, holder: str) -> None:
        while True:
            await asyncio.sleep(_RENEW_SECONDS)
            await self._try_write(store.HOLD_KEY_LONGER, request.params(holder=holder, held_until=self._in(_HELD_MS)))

    async def _try_write(self, statement: str, params: dict[str, Any]) -> None:
        """The work counts, done or failed, and not its note: without it a repeated request waits, then is done anew."""
        try:
            await self._database.write(lambda transaction: transaction.execute(statement, params), owner=None)
        except StorageUnavailable:
            _logger.warning("what became of a request with an idempotency key could not be noted", exc_info=True)

    def _in(self, milliseconds: int) -> str:
        return rfc3339(self._clock() + milliseconds)


def _refuse_other_body(request: KeyedRequest, body_hash: str) -> None:
    if body_hash != request.body_hash:
        raise Conflict(f"this {HEADER} was used with another body")
