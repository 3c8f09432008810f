"""Everything held on one caller: handed out, or forgotten."""

import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from memory_gateway.engine import store
from memory_gateway.storage.port import Database, Params, Transaction

_PAGE = 500


async def erase(database: Database, user_id: str) -> list[int]:
    """Forget everything this caller wrote, in every app and project; the spaces that are gone.

    A transaction a table, so that others' writes go on in between; the space's own rows are the last to go, so that
    an erasure that was cut short finds its way again.
    """
    spaces = [space_no for space_no, _, _ in await database.fetch(store.SPACES_OF_USER, {"user_id": user_id})]
    for space_no in spaces:
        params = {"user_id": user_id, "space_no": space_no}
        for statement in store.ERASE_SPACE:
            await database.write(partial(_execute, statements=(statement,), params=params), owner=user_id)
        await database.write(partial(_execute, statements=store.FORGET_SPACE, params=params), owner=user_id)
    return spaces


async def _execute(transaction: Transaction, *, statements: tuple[str, ...], params: Params) -> None:
    for statement in statements:
        await transaction.execute(statement, params)


async def export(database: Database, user_id: str) -> AsyncIterator[dict[str, Any]]:
    """Every message as it was stored, in order, a page at a time."""
    for space_no, app_id, project_id in await database.fetch(store.SPACES_OF_USER, {"user_id": user_id}):
        first = 0
        while rows := await _page(database, space_no, first):
            for row in rows:
                yield {"kind": "message", "app_id": app_id, "project_id": project_id, **_message(row)}
            first += _PAGE


async def _page(database: Database, space_no: int, first: int) -> list[tuple[Any, ...]]:
    params = {"space_no": space_no, "first": first, "end": first + _PAGE}
    return await database.read(lambda transaction: transaction.fetch(store.MESSAGES, params))


def _message(row: tuple[Any, ...]) -> dict[str, Any]:
    identifier, session_id, sender_id, sender_name, role, timestamp, content, tool_calls, tool_call_id = row
    return {
        "id": identifier,
        "session_id": session_id,
        "sender_id": sender_id,
        "sender_name": sender_name,
        "role": role,
        "timestamp": timestamp,
        "content": json.loads(content),
        "tool_calls": json.loads(tool_calls) if tool_calls else None,
        "tool_call_id": tool_call_id,
    }
