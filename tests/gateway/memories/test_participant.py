"""A user's export and erasure, for what this room holds."""

from typing import Any

import pytest

from memory_gateway.gateway.memories.found import Session
from memory_gateway.gateway.memories.ownership import Sessions
from tests.fakes.house import House, User, ids
from tests.gateway.memories.conftest import show

TABLES = ["session_owners", "idempotency_keys", "shown_memories", "memory_tombstones", "memory_overrides"]


async def lived(house: House, user: User) -> None:
    """The user leaves a row in every table."""
    body = {"conversation_id": user.user_id, "messages": [user.says("green tea")]}
    assert (await user.post("/memories/add", body, **{"Idempotency-Key": "k"})).status_code == 200
    await user.flush(user.user_id)
    (shown,) = ids(await user.search("tea"))
    await user.override(shown, "white tea")
    await user.delete(shown)
    await house.memories._tasks.close()


async def rows(house: House, table: str) -> list[Any]:
    return await house.database.fetch(f"SELECT user_id FROM {table} ORDER BY user_id")


async def test_an_export_holds_every_row_of_the_user_and_of_no_other(house: House, ann: User, anna: User) -> None:
    await lived(house, ann)
    await lived(house, anna)
    exported = [row async for row in house.memories.export("ann")]
    assert [row["kind"] for row in exported] == [
        "session",
        "tombstone",
        "override",
        "shown_memory",
        "idempotency_key",
    ]
    by_kind = {row["kind"]: row for row in exported}
    assert by_kind["session"]["session_id"] == "chat:ann"
    assert by_kind["override"]["text"] == "white tea"
    assert by_kind["shown_memory"]["snapshot"]["episode"] == "ann: green tea"
    assert by_kind["idempotency_key"]["reply"]["data"] == {"message_count": 1, "status": "accumulated"}
    assert "anna" not in str(exported)
    assert [row async for row in house.memories.export("a_n")] == []


async def test_an_erasure_takes_the_users_rows_and_no_others(any_house: House) -> None:
    ann, anna = await any_house.user("ann"), await any_house.user("anna")
    await lived(any_house, ann)
    await lived(any_house, anna)
    assert [await rows(any_house, table) for table in TABLES] == [[("ann",), ("anna",)]] * 5
    for _ in range(2):
        await any_house.memories.erase("ann")
    await any_house.memories._tasks.close()
    left = {table: [user for (user,) in await rows(any_house, table)] for table in TABLES}
    forgets = any_house.upstream.traits.can_erase
    assert left.pop("session_owners") == (["anna"] if forgets else ["ann", "anna"])
    assert left == {table: ["anna"] for table in TABLES[1:]}


async def test_a_session_stays_taken_where_the_upstream_cannot_forget_it(any_house: House) -> None:
    """Else the next user to take its name would be given what the upstream still holds."""
    ann, anna = await any_house.user("ann"), await any_house.user("anna")
    await ann.add("my pin is 4471")
    response = await any_house.client.request("DELETE", "/users/ann", headers=ann.headers)
    assert response.status_code == 200
    forgets = any_house.upstream.traits.can_erase
    assert (await anna.add("hello")).status_code == (200 if forgets else 403)
    assert "4471" not in (await anna.ask("pin", scope="current_chat", conversation_id="1")).text
    own = await Sessions(any_house.database, any_house.clock).is_own("anna", Session("default", "default", "chat:1"))
    assert own is forgets


async def test_what_is_waiting_to_be_written_is_forgotten_too(house: House, everos: Any, ann: User) -> None:
    await show(everos, ann, "e1")
    await house.memories.erase("ann")
    await house.memories._tasks.close()
    assert await rows(house, "shown_memories") == []
    assert (await ann.delete("e1")).status_code == 404


@pytest.mark.parametrize("user_id", ["%", "_nn", "ANN", "an"])
async def test_erasure_compares_whole_ids(house: House, ann: User, user_id: str) -> None:
    await lived(house, ann)
    await house.memories.erase(user_id)
    assert [await rows(house, table) for table in TABLES] == [[("ann",)]] * 5
