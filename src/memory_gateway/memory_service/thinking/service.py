"""Thinking logs: what an agent thought in the background, and which tools it called."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from memory_gateway.kit.clock import Clock, rfc3339
from memory_gateway.kit.errors import InvalidInput, MalformedRequest, NotFound
from memory_gateway.kit.ids import OwnedIds, owner_no_in, shard_key
from memory_gateway.kit.text import has_nul_or_surrogate
from memory_gateway.memory_service.thinking import store
from memory_gateway.memory_service.thinking.schemas import NewThinking, ThinkingLog, ThinkingStats
from memory_gateway.memory_service.users import check_user_id
from memory_gateway.storage.port import Database, Row, Transaction

Rows = list[Row]

DEFAULT_USER = "admin"
_NO_CALLS = "[]"
_EXPORTED_AT_ONCE = 200
_calls = msgspec.json.Decoder(list[msgspec.Raw])


class Thinking:
    """Writes and reads the logs. They are never changed."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._new_id = OwnedIds(clock)

    async def create(self, new: NewThinking) -> ThinkingLog:
        """Keep a log. `MalformedRequest` without content, `InvalidInput` for tool calls that are no JSON array."""
        if not new.content or not new.content.strip():
            raise MalformedRequest("缺少 content")
        tool_calls = new.tool_calls or _NO_CALLS
        calls = _count_calls(tool_calls)
        log = ThinkingLog(
            id="",
            user_id=_given(new.user_id) or DEFAULT_USER,
            content=new.content,
            tool_calls=tool_calls,
            tool_call_count=new.tool_call_count or calls,
            content_length=new.content_length or len(new.content),
            created_at=rfc3339(self._clock()),
        )
        key = shard_key(log.user_id)

        async def work(transaction: Transaction) -> ThinkingLog:
            while True:
                made = replace(log, id=self._new_id(key))
                if await transaction.execute(store.INSERT, {**asdict(made), "shard_key": key}):
                    return made

        return await self._database.write(work, owner=log.user_id)

    async def list(self, user_id: str | None, limit: int, offset: int) -> tuple[list[ThinkingLog], int]:
        """A page of one user's logs, newest first, and how many there are in all."""
        owner = _place(_given(user_id) or DEFAULT_USER)

        async def work(transaction: Transaction) -> tuple[list[Row], int]:
            rows = await transaction.fetch(store.NEWEST, {**owner, "limit": limit, "offset": offset})
            ((total,),) = await transaction.fetch(store.COUNT, owner)
            return rows, total

        rows, total = await self._database.read(work)
        return [ThinkingLog(*row) for row in rows], total

    async def get(self, log_id: str) -> ThinkingLog:
        """One log, or `NotFound`."""
        row = None if has_nul_or_surrogate(log_id) else await self._find(log_id)
        if row is None:
            raise NotFound("思考日志不存在")
        return ThinkingLog(*row)

    async def stats(self, user_id: str | None) -> ThinkingStats:
        """Of one user, or of all."""

        owner = _given(user_id)
        sql, params = (store.STATS_OF_ALL, {}) if owner is None else (store.STATS, _place(owner))

        async def work(transaction: Transaction) -> list[Row]:
            return await transaction.fetch(sql, params)

        (row,) = await self._database.read(work)
        return ThinkingStats(*row)

    async def export(self, user_id: str) -> AsyncIterator[dict[str, Any]]:
        """Every log of this user, oldest first."""
        seen = {"created_at": "", "id": ""}
        while rows := await self._next_oldest({**_place(user_id), "limit": _EXPORTED_AT_ONCE, **seen}):
            for log in (ThinkingLog(*row) for row in rows):
                yield {"kind": "thinking_log", **asdict(log)}
                seen = {"created_at": log.created_at, "id": log.id}

    async def erase(self, user_id: str) -> None:
        """Delete every log of this user."""

        async def work(transaction: Transaction) -> None:
            await transaction.execute(store.ERASE, _place(user_id))

        await self._database.write(work, owner=user_id)

    async def _find(self, log_id: str) -> Row | None:
        key = owner_no_in(log_id)
        if key is None:  # a log that is older than ids which say where they lie
            return await self._database.fetch_one(store.FIND_BY_ID_ALONE, {"id": log_id})
        return await self._database.fetch_one(store.FIND, {"id": log_id, "shard_key": key})

    async def _next_oldest(self, after: dict[str, Any]) -> Rows:
        async def work(transaction: Transaction) -> Rows:
            return await transaction.fetch(store.NEXT_OLDEST, after)

        return await self._database.read(work)


def _place(user_id: str) -> dict[str, Any]:
    return {"shard_key": shard_key(user_id), "user_id": user_id}


def _given(user_id: str | None) -> str | None:
    return check_user_id(user_id) if user_id is not None and user_id.strip() else None


def _count_calls(tool_calls: str) -> int:
    try:
        return len(_calls.decode(tool_calls))
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidInput("must be a JSON array in a string", field="tool_calls") from error
