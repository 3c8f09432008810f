"""An entry or a log is asked for by its id alone; the id leads to the shard where it lies."""

import secrets
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any

import httpx
import pytest

from memory_gateway.kit.ids import owner_no_in, shard_key, uuid7_id
from memory_gateway.memory_service.entries import store as entries_store
from memory_gateway.memory_service.thinking import store as thinking_store
from memory_gateway.storage.port import NO_PARAMS, Params, Row
from tests.fakes.memory_service import ServiceHouse

MEMORIES, THINKING = "/api/v1/memories", "/api/v1/thinking"
ALONE = {entries_store.FIND_BY_ID_ALONE, thinking_store.FIND_BY_ID_ALONE}


async def remember(client: httpx.AsyncClient, content: str, user_id: str = "ann") -> str:
    reply = await client.post(MEMORIES, json={"user_id": user_id, "content": content})
    assert reply.status_code == 201
    return str(reply.json()["memory"]["id"])


async def think(client: httpx.AsyncClient, content: str, user_id: str = "ann") -> str:
    reply = await client.post(THINKING, json={"user_id": user_id, "content": content})
    assert reply.status_code == 201
    return str(reply.json()["thinking"]["id"])


@pytest.fixture
def asked_alone(house: ServiceHouse, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids that were looked for in every shard."""
    alone: list[str] = []
    fetch_one = house.database.fetch_one

    async def noted(sql: str, params: Params = NO_PARAMS) -> Row | None:
        if sql in ALONE:
            alone.append(params["id"])
        return await fetch_one(sql, params)

    monkeypatch.setattr(house.database, "fetch_one", noted)
    return alone


async def test_an_id_leads_to_its_users_rows(
    client: httpx.AsyncClient, house: ServiceHouse, asked_alone: list[str]
) -> None:
    for user_id in ("anna", "ann", "a_b"):
        memory_id = await remember(client, f"of {user_id}", user_id)
        ((user_no,),) = await house.database.fetch(
            "SELECT user_no FROM memory_user_numbers WHERE user_id = :user_id", {"user_id": user_id}
        )
        assert owner_no_in(memory_id) == user_no
        log_id = await think(client, f"of {user_id}", user_id)
        assert owner_no_in(log_id) == shard_key(user_id)
        assert (await client.get(f"{MEMORIES}/{memory_id}")).json()["memory"]["user_id"] == user_id
        assert (await client.get(f"{THINKING}/{log_id}")).json()["thinking"]["user_id"] == user_id
        assert (await client.put(f"{MEMORIES}/{memory_id}", json={"importance": 9})).status_code == 200
        assert (await client.delete(f"{MEMORIES}/{memory_id}")).status_code == 200
        assert (await client.get(f"{MEMORIES}/{memory_id}")).status_code == 404
    assert asked_alone == []


async def test_rows_that_are_older_than_such_ids_are_found_by_the_id_alone(
    client: httpx.AsyncClient, house: ServiceHouse, asked_alone: list[str]
) -> None:
    ids = {"memory_entries": uuid7_id(), "thinking_logs": uuid7_id()}
    now = {"memory_entries": await remember(client, "old"), "thinking_logs": await think(client, "old")}

    async def grow_old(transaction: Any) -> None:
        for table, old in ids.items():
            await transaction.execute(f"UPDATE {table} SET id = :old WHERE id = :now", {"old": old, "now": now[table]})

    await house.database.write(grow_old)
    memory_id, log_id = ids.values()
    assert (await client.get(f"{THINKING}/{log_id}")).json()["thinking"]["content"] == "old"
    assert (await client.get(f"{MEMORIES}/{memory_id}")).json()["memory"]["content"] == "old"
    assert asked_alone == [log_id, memory_id]
    assert (await client.put(f"{MEMORIES}/{memory_id}", json={"content": "changed"})).status_code == 200
    assert (await client.get(f"{MEMORIES}/{memory_id}")).json()["memory"]["content"] == "changed"
    assert (await client.delete(f"{MEMORIES}/{memory_id}")).status_code == 200
    for path in (f"{MEMORIES}/{memory_id}", f"{MEMORIES}/{now['memory_entries']}", f"{THINKING}/{uuid7_id()}"):
        assert (await client.get(path)).status_code == 404


def random_bits(*values: int) -> Iterator[int]:
    return chain(values, repeat(1))


async def test_an_id_that_another_process_took_is_made_anew(
    client: httpx.AsyncClient, house: ServiceHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both made it in the same millisecond, of the same random bits."""
    for create, path, kind in ((remember, MEMORIES, "memory"), (think, THINKING, "thinking")):
        bits = random_bits(5)
        monkeypatch.setattr(secrets, "randbits", lambda _, bits=bits: next(bits))
        first = await create(client, "one of many words")
        other = ServiceHouse(house.database)
        other.clock = house.clock
        bits = random_bits(5)
        monkeypatch.setattr(secrets, "randbits", lambda _, bits=bits: next(bits))
        async with other.client() as other_client:
            second = await create(other_client, "something else entirely")
        await other.entries.close()
        assert first < second
        assert owner_no_in(first) == owner_no_in(second)
        contents = [(await client.get(f"{path}/{id_}")).json()[kind]["content"] for id_ in (first, second)]
        assert contents == ["one of many words", "something else entirely"]
