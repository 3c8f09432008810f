"""Who gets in: F2 of the field cases, and every way a key can be wrong."""

import httpx
import pytest
from litestar.handlers import HTTPRouteHandler
from litestar.routes import HTTPRoute

from memory_gateway.gateway.auth import require_admin, require_owner_or_admin, require_user
from memory_gateway.gateway.http import ADMIN_SECURITY, OWNER_OR_ADMIN_SECURITY, USER_SECURITY
from tests.fakes.front_door import ADMIN_KEY, FrontDoor
from tests.gateway.conftest import client_of

OPEN_TO_ALL = {"/health", "/metrics", "/openapi.json", "/docs"}


def test_every_route_has_a_guard_and_says_so_in_the_document(front: FrontDoor) -> None:
    security = {
        require_user: USER_SECURITY,
        require_admin: ADMIN_SECURITY,
        require_owner_or_admin: OWNER_OR_ADMIN_SECURITY,
    }
    guarded = 0
    for route in front.app().routes:
        if route.path in OPEN_TO_ALL or route.path.startswith("/docs/"):
            continue
        assert isinstance(route, HTTPRoute), route.path
        for handler in route.route_handlers:
            if _answers_options_only(handler):
                continue
            guards = [guard for guard in handler.guards or () if guard in security]
            assert len(guards) == 1, f"{route.path} is open to everybody"
            assert handler.security == security[guards[0]], route.path
            guarded += 1
    assert guarded == 9


def _answers_options_only(handler: HTTPRouteHandler) -> bool:
    return {str(method) for method in handler.http_methods} == {"OPTIONS"}


async def test_a_good_key_opens_the_door_from_headers_and_from_the_body(
    client: httpx.AsyncClient, front: FrontDoor
) -> None:
    headers = await front.headers_of("ann")
    key = headers["X-User-Key"]
    assert (await client.get("/notes", headers=headers)).json()["user_id"] == "ann"
    body = {"user_id": "ann", "user_key": key, "text": "hello"}
    assert (await client.post("/notes", json=body)).json() == {"user_id": "ann", "text": "hello"}
    assert (await client.put("/notes/7", json=body)).json()["user_id"] == "ann"


async def test_no_key_a_wrong_key_and_an_unknown_user_get_the_same_401(
    client: httpx.AsyncClient, front: FrontDoor
) -> None:
    ann, anna = await front.headers_of("ann"), await front.headers_of("anna")
    key = ann["X-User-Key"]
    wrong = [
        {},
        {"X-User-ID": "ann"},
        {"X-User-Key": key},
        {"X-User-ID": "nobody", "X-User-Key": key},
        {"X-User-ID": "ann", "X-User-Key": ""},
        {"X-User-ID": "ann", "X-User-Key": key[:-1]},
        {"X-User-ID": "ann", "X-User-Key": key + "x" * 5000},
        {"X-User-ID": "ann", "X-User-Key": anna["X-User-Key"]},
        {"X-User-ID": "Ann", "X-User-Key": key},
        {"X-User-ID": "an_", "X-User-Key": key},
        {"X-User-ID": "%", "X-User-Key": key},
        {"X-User-ID": "../ann", "X-User-Key": key},
        {"X-User-ID": "ann\xe9", "X-User-Key": "\xff"},
        {"X-Admin-Key": ADMIN_KEY},
    ]
    bodies = set()
    for headers in wrong:
        reply = await client.get(
            "/notes", headers=[(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        )
        assert reply.status_code == 401, headers
        bodies.add(str(reply.json()["error"]))
    assert bodies == {"{'code': 'unauthorized', 'message': 'user id and user key do not match'}"}


async def test_keys_in_the_query_string_open_nothing(client: httpx.AsyncClient, front: FrontDoor) -> None:
    key = (await front.headers_of("ann"))["X-User-Key"]
    assert (await client.get(f"/notes?user_id=ann&user_key={key}")).status_code == 401


async def test_get_takes_no_credentials_from_a_body(client: httpx.AsyncClient, front: FrontDoor) -> None:
    key = (await front.headers_of("ann"))["X-User-Key"]
    reply = await client.request("GET", "/notes", json={"user_id": "ann", "user_key": key})
    assert reply.status_code == 401


async def test_nobody_speaks_for_another_user(client: httpx.AsyncClient, front: FrontDoor) -> None:
    mira, teo = await front.headers_of("mira"), await front.headers_of("teo")
    override = await client.put("/notes/7", json={"text": "x", "user_id": "teo"}, headers=mira)
    add = await client.post("/notes", json={"text": "x", "user_id": "teo", "user_key": teo["X-User-Key"]}, headers=mira)
    own_key_only = await client.post("/notes", json={"text": "x", "user_id": "teo", "user_key": mira["X-User-Key"]})
    assert [override.status_code, add.status_code, own_key_only.status_code] == [403, 403, 401]


async def test_the_last_of_two_user_ids_in_a_body_counts_for_guard_and_route_alike(
    client: httpx.AsyncClient, front: FrontDoor
) -> None:
    mira = await front.headers_of("mira")
    body = b'{"user_id":"mira","user_key":"%b","text":"x","user_id":"teo"}' % mira["X-User-Key"].encode()
    json = {"Content-Type": "application/json"}
    assert (await client.post("/notes", content=body, headers=json)).status_code == 401
    assert (await client.post("/notes", content=body, headers={**json, **mira})).status_code == 403


@pytest.mark.parametrize("odd", [5, ["ann"], {"a": 1}, None, True])
async def test_credentials_that_are_no_text_are_no_credentials(client: httpx.AsyncClient, odd: object) -> None:
    reply = await client.post("/notes", json={"user_id": odd, "user_key": odd, "text": "x"})
    assert reply.status_code == 401


async def test_who_is_unknown_learns_nothing_about_the_body(client: httpx.AsyncClient, front: FrontDoor) -> None:
    headers = await front.headers_of("ann")
    bad = {"text": 5, "colour": "red"}
    assert (await client.post("/notes", json=bad)).status_code == 401
    assert (await client.post("/notes", json=[bad])).status_code == 401
    assert (await client.post("/notes", json=bad, headers=headers)).status_code == 422


async def test_headers_are_not_completed_from_the_body(client: httpx.AsyncClient, front: FrontDoor) -> None:
    key = (await front.headers_of("ann"))["X-User-Key"]
    for body in ({"user_key": key}, {"user_id": "ann", "user_key": key}):
        reply = await client.post("/notes", json={**body, "text": "x"}, headers={"X-User-ID": "ann"})
        assert reply.status_code == 401


async def test_a_form_is_admitted_by_headers_or_by_its_own_fields(client: httpx.AsyncClient, front: FrontDoor) -> None:
    mira, teo = await front.headers_of("mira"), await front.headers_of("teo")
    file = {"file": ("a.txt", b"a")}

    async def upload(fields: dict[str, str], headers: dict[str, str] | None = None) -> httpx.Response:
        return await client.post("/uploads", data=fields, files=file, headers=headers)

    assert (await upload({}, mira)).json() == {"user_id": "mira"}
    assert (await upload({"user_id": "mira"}, mira)).json() == {"user_id": "mira"}
    assert (await upload({"user_id": "teo", "user_key": teo["X-User-Key"]})).json() == {"user_id": "teo"}
    assert (await upload({"user_id": "teo"}, mira)).status_code == 403
    assert (await upload({"user_id": "teo", "user_key": mira["X-User-Key"]})).status_code == 401
    assert (await upload({})).status_code == 401


async def test_a_multipart_content_type_opens_no_other_route(client: httpx.AsyncClient) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    assert (await client.get("/faults/bug", headers=headers)).status_code == 401
    assert (await client.post("/notes", content=b"--x--", headers=headers)).status_code == 415


async def test_the_admin_key_is_checked(client: httpx.AsyncClient) -> None:
    for headers in ({}, {"X-Admin-Key": ""}, {"X-Admin-Key": ADMIN_KEY + "x"}, {"X-User-ID": "admin"}):
        reply = await client.post("/users", json={"user_id": "ann"}, headers=headers)
        assert reply.status_code == 401
    assert (await client.post("/users", json={"user_id": "ann"}, headers={"X-Admin-Key": ADMIN_KEY})).status_code == 201


async def test_a_users_requests_are_limited_and_no_one_elses(front: FrontDoor) -> None:
    ann, anna = await front.headers_of("ann"), await front.headers_of("anna")
    async with client_of(front.app(rate_limit=2.0)) as client:
        statuses = [(await client.get("/notes", headers=ann)).status_code for _ in range(3)]
        refused = await client.get("/notes", headers=ann)
        assert (await client.get("/notes", headers=anna)).status_code == 200
    assert statuses == [200, 200, 429]
    assert (refused.json()["error"]["code"], refused.headers["retry-after"]) == ("too_many_requests", "1")


async def test_without_a_limit_nothing_is_refused(client: httpx.AsyncClient, front: FrontDoor) -> None:
    ann = await front.headers_of("ann")
    assert {(await client.get("/notes", headers=ann)).status_code for _ in range(100)} == {200}


async def test_failed_authentications_are_limited_by_address_and_good_keys_still_pass(front: FrontDoor) -> None:
    ann = await front.headers_of("ann")
    wrong = {**ann, "X-User-Key": "wrong"}
    async with client_of(front.app(auth_failure_limit=3)) as client:
        statuses = [(await client.get("/notes", headers=wrong)).status_code for _ in range(4)]
        refused = await client.post("/notes", json={"text": "x"})
        assert (await client.get("/notes", headers=ann)).status_code == 200
    assert statuses == [401, 401, 401, 429]
    assert refused.status_code == 429
    assert 1 <= int(refused.headers["retry-after"]) <= 20


async def test_after_too_many_wrong_admin_keys_not_even_the_right_one_is_looked_at(front: FrontDoor) -> None:
    async with client_of(front.app(auth_failure_limit=2)) as client:
        wrong = [
            (await client.post("/users", json={"user_id": "ann"}, headers={"X-Admin-Key": "guess"})).status_code
            for _ in range(3)
        ]
        right = await client.post("/users", json={"user_id": "ann"}, headers={"X-Admin-Key": ADMIN_KEY})
    assert (wrong, right.status_code) == ([401, 401, 429], 429)


async def test_what_a_proxy_calls_the_address_takes_little_room(front: FrontDoor) -> None:
    app = front.app(auth_failure_limit=2)
    transport = httpx.ASGITransport(app=app, client=("x" * 5_000, 1))  # type: ignore[arg-type]
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        refused = await client.post("/users", json={"user_id": "ann"}, headers={"X-Admin-Key": "guess"})
    assert refused.status_code == 401
    assert [len(name) for name in app.state.gatekeeper._failures._buckets] == [len("admin ") + 64]
