from typing import Any

import httpx
import pytest

from memory_gateway.storage.port import Transaction
from tests.fakes.front_door import ADMIN_KEY, FrontDoor


async def log(front: FrontDoor) -> list[tuple[Any, ...]]:
    return await front.database.fetch("SELECT user_id, action, object_type, object_id FROM audit_log ORDER BY at, id")


async def test_an_act_is_logged_with_its_time_and_the_request_that_did_it(
    client: httpx.AsyncClient, front: FrontDoor
) -> None:
    reply = await client.post("/users", json={"user_id": "ann"}, headers={"X-Admin-Key": ADMIN_KEY})
    rows = await front.database.fetch("SELECT user_id, at, action, object_type, object_id, request_id FROM audit_log")
    request_id = reply.headers["x-request-id"]
    assert rows == [("(admin)", "2026-05-28T20:26:40.000Z", "create", "user", "ann", request_id)]


async def test_who_rotated_and_erased_is_told_apart(client: httpx.AsyncClient, front: FrontDoor) -> None:
    ann = await front.headers_of("ann")
    admin = {"X-Admin-Key": ADMIN_KEY}
    key = (await client.post("/users/ann/keys", headers=ann)).json()["user_key"]
    await client.post("/users/ann/keys", headers=admin, json={"grace_seconds": 60})
    await client.delete("/users/ann", headers={"X-User-ID": "ann", "X-User-Key": key})
    await front.accounts.create("teo")
    await client.delete("/users/teo", headers=admin)
    assert await log(front) == [
        ("(admin)", "create", "user", "ann"),
        ("ann", "rotate_key", "user", "ann"),
        ("(admin)", "rotate_key", "user", "ann"),
        ("ann", "erase", "user", "ann"),
        ("(admin)", "create", "user", "teo"),
        ("(admin)", "erase", "user", "teo"),
    ]


async def test_an_act_that_did_not_happen_is_not_logged(front: FrontDoor) -> None:
    async def work(transaction: Transaction) -> None:
        await front.audit.record_in(transaction, "ann", "delete", "resource", "1")
        raise RuntimeError("the act failed")

    with pytest.raises(RuntimeError):
        await front.database.write(work)
    assert await log(front) == []


async def test_an_act_without_a_transaction_of_its_own_is_logged(front: FrontDoor) -> None:
    await front.audit.record("ann", "export", "user", "ann")
    assert await log(front) == [("ann", "export", "user", "ann")]


async def test_everybody_gets_the_own_acts_in_order(front: FrontDoor) -> None:
    for user_id in ("ann", "anna", "a_b", "axb", "ann"):
        await front.audit.record(user_id, "delete", "resource", f"of {user_id}")
        front.clock.forward(seconds=1)
    for user_id, times in (("ann", 2), ("anna", 1), ("a_b", 1), ("axb", 1), ("a%", 0)):
        acts = [act async for act in front.audit.export(user_id)]
        assert [act["object_id"] for act in acts] == [f"of {user_id}"] * times
    assert await anext(front.audit.export("anna")) == {
        "kind": "audit",
        "at": "2026-05-28T20:26:41.000Z",
        "action": "delete",
        "object_type": "resource",
        "object_id": "of anna",
        "request_id": None,
    }


async def test_an_erased_users_acts_stay_without_what_they_were_done_to(front: FrontDoor) -> None:
    await front.audit.record("a_b", "add", "session", "chat:my divorce")
    await front.audit.record("axb", "add", "session", "chat:lunch")
    await front.audit.record("a_b", "erase", "user", "a_b")
    await front.audit.erase("a_b")
    await front.audit.erase("a_b")
    assert await log(front) == [
        ("a_b", "add", "session", ""),
        ("axb", "add", "session", "chat:lunch"),
        ("a_b", "erase", "user", "a_b"),
    ]
