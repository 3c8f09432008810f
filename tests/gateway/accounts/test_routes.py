import httpx
import pytest

from tests.fakes.front_door import ADMIN_KEY, FrontDoor

ADMIN = {"X-Admin-Key": ADMIN_KEY}


async def test_the_admin_registers_a_user_who_then_comes_in(client: httpx.AsyncClient) -> None:
    reply = await client.post("/users", json={"user_id": "ann"}, headers=ADMIN)
    assert reply.status_code == 201
    assert reply.json().keys() == {"user_id", "user_key", "created_at"}
    assert (reply.json()["user_id"], reply.json()["created_at"]) == ("ann", "2026-05-28T20:26:40.000Z")
    headers = {"X-User-ID": "ann", "X-User-Key": reply.json()["user_key"]}
    assert (await client.get("/notes", headers=headers)).status_code == 200


@pytest.mark.parametrize("taken", ["ann", "ANN"])
async def test_a_taken_id_is_409(client: httpx.AsyncClient, taken: str) -> None:
    await client.post("/users", json={"user_id": "ann"}, headers=ADMIN)
    reply = await client.post("/users", json={"user_id": taken}, headers=ADMIN)
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "conflict")


@pytest.mark.parametrize(
    "user_id",
    ["", ".", "..", "../b", "..\\b", "a/b", "a b", "ann\n", "x" * 65, "é", "早", "\0", 5, None, ["a"]],
)
async def test_an_id_that_breaks_the_rule_is_422_and_makes_no_folder(
    client: httpx.AsyncClient, front: FrontDoor, user_id: object
) -> None:
    reply = await client.post("/users", json={"user_id": user_id}, headers=ADMIN)
    assert (reply.status_code, reply.json()["error"]["details"]) == (422, {"field": "user_id"})
    assert not front.storage_root.exists()


async def test_a_lone_surrogate_in_an_id_is_422(client: httpx.AsyncClient) -> None:
    headers = {**ADMIN, "Content-Type": "application/json"}
    reply = await client.post("/users", content=rb'{"user_id":"a\ud800"}', headers=headers)
    assert (reply.status_code, reply.json()["error"]["details"]) == (422, {"field": "user_id"})


@pytest.mark.parametrize(("body", "field"), [({}, "user_id"), ({"user_id": "ann", "admin": True}, "admin")])
async def test_missing_and_unknown_fields_are_422(
    client: httpx.AsyncClient, body: dict[str, object], field: str
) -> None:
    reply = await client.post("/users", json=body, headers=ADMIN)
    assert (reply.status_code, reply.json()["error"]["details"]) == (422, {"field": field})


async def test_a_user_key_registers_nobody(client: httpx.AsyncClient, front: FrontDoor) -> None:
    headers = await front.headers_of("ann")
    assert (await client.post("/users", json={"user_id": "teo"}, headers=headers)).status_code == 401


async def test_a_user_rotates_the_own_key_without_a_body(client: httpx.AsyncClient, front: FrontDoor) -> None:
    old = await front.headers_of("ann")
    reply = await client.post("/users/ann/keys", headers=old)
    assert reply.status_code == 201
    assert (await client.get("/notes", headers=old)).status_code == 401
    new = {"X-User-ID": "ann", "X-User-Key": reply.json()["user_key"]}
    assert (await client.get("/notes", headers=new)).status_code == 200


async def test_a_rotation_may_leave_the_old_key_a_while(client: httpx.AsyncClient, front: FrontDoor) -> None:
    old = await front.headers_of("ann")
    body = {"user_id": "ann", "user_key": old["X-User-Key"], "grace_seconds": 604800}
    assert (await client.post("/users/ann/keys", json=body)).status_code == 201
    assert (await client.get("/notes", headers=old)).status_code == 200
    front.clock.forward(seconds=604800)
    assert (await client.get("/notes", headers=old)).status_code == 401


@pytest.mark.parametrize("grace", [-1, 604801, 1.5, "60", None, True])
async def test_a_grace_out_of_range_is_422_and_changes_nothing(
    client: httpx.AsyncClient, front: FrontDoor, grace: object
) -> None:
    headers = await front.headers_of("ann")
    reply = await client.post("/users/ann/keys", json={"grace_seconds": grace}, headers=headers)
    assert (reply.status_code, reply.json()["error"]["details"]) == (422, {"field": "grace_seconds"})
    assert (await client.get("/notes", headers=headers)).status_code == 200


async def test_the_admin_rotates_any_users_key(client: httpx.AsyncClient, front: FrontDoor) -> None:
    old = await front.headers_of("ann")
    assert (await client.post("/users/ann/keys", headers=ADMIN)).status_code == 201
    assert (await client.get("/notes", headers=old)).status_code == 401
    assert (await client.post("/users/nobody/keys", headers=ADMIN)).status_code == 404


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_another_users_account_looks_like_none(client: httpx.AsyncClient, front: FrontDoor, method: str) -> None:
    ann = await front.headers_of("ann")
    anna = await front.headers_of("anna")
    replies = []
    for other in ("anna", "nobody", "Ann", "a%25"):
        reply = await client.request(method, f"/users/{other}{'/keys' if method == 'POST' else ''}", headers=ann)
        replies.append((reply.status_code, str(reply.json()["error"])))
    assert set(replies) == {(404, "{'code': 'not_found', 'message': 'not found'}")}
    assert (await client.get("/notes", headers=anna)).status_code == 200


async def test_a_wrong_admin_key_is_not_saved_by_a_good_user_key(client: httpx.AsyncClient, front: FrontDoor) -> None:
    headers = {**await front.headers_of("ann"), "X-Admin-Key": "guess"}
    assert (await client.delete("/users/ann", headers=headers)).status_code == 401


async def test_deleting_takes_credentials_from_headers_only(client: httpx.AsyncClient, front: FrontDoor) -> None:
    key = (await front.headers_of("ann"))["X-User-Key"]
    reply = await client.request("DELETE", "/users/ann", json={"user_id": "ann", "user_key": key})
    assert reply.status_code == 401
    assert await front.accounts.exists("ann")


async def test_a_user_erases_the_own_account_and_the_id_is_never_given_out_again(
    client: httpx.AsyncClient, front: FrontDoor
) -> None:
    ann, anna = await front.headers_of("ann"), await front.headers_of("anna")
    reply = await client.delete("/users/ann", headers=ann)
    assert reply.status_code == 200
    assert reply.json() == {"user_id": "ann", "erased": True, "upstream": {"erased": True, "remaining": None}}
    assert (await client.get("/notes", headers=ann)).status_code == 401
    assert (await client.delete("/users/ann", headers=ann)).status_code == 401
    for user_id in ("ann", "Ann"):
        assert (await client.post("/users", json={"user_id": user_id}, headers=ADMIN)).status_code == 409
    assert (await client.post("/users/ann/keys", headers=ADMIN)).status_code == 404
    assert (await client.get("/notes", headers=anna)).status_code == 200


async def test_the_admin_erases_anybody_and_asking_twice_does_no_harm(
    client: httpx.AsyncClient, front: FrontDoor
) -> None:
    await front.accounts.create("ann")
    first = await client.delete("/users/ann", headers=ADMIN)
    second = await client.delete("/users/ann", headers=ADMIN)
    assert (first.status_code, second.status_code) == (200, 200)
    assert first.json() == second.json()
    assert (await client.delete("/users/nobody", headers=ADMIN)).status_code == 404
