import logging
import re

import httpx
import pytest

from tests.fakes.front_door import FrontDoor


async def test_every_error_has_the_one_envelope_and_the_request_id(client: httpx.AsyncClient) -> None:
    for reply in [
        await client.get("/nowhere"),
        await client.put("/notes"),
        await client.get("/notes"),
        await client.post("/users"),
        await client.get("/docs/assets/none.js"),
    ]:
        body = reply.json()
        assert body.keys() == {"error", "request_id"}
        assert body["error"].keys() == {"code", "message"}
        assert body["request_id"] == reply.headers["x-request-id"]


async def test_an_unknown_path_is_404_and_an_unknown_method_405_that_says_what_is_allowed(
    client: httpx.AsyncClient,
) -> None:
    missing = await client.get("/nowhere")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "not_found")
    reply = await client.put("/notes")
    assert (reply.status_code, reply.json()["error"]["code"]) == (405, "method_not_allowed")
    assert set(reply.headers["allow"].split(", ")) == {"GET", "POST", "OPTIONS"}


async def test_a_bug_is_500_logged_with_the_request_id_and_never_quoted(
    client: httpx.AsyncClient, front: FrontDoor, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        reply = await client.get("/faults/bug", headers=await front.headers_of("ann"))
    assert (reply.status_code, reply.json()["error"]) == (500, {"code": "internal_error", "message": "internal error"})
    assert "secret" not in reply.text
    assert reply.json()["request_id"] in caplog.text
    assert "secret of /var/lib/gateway" in caplog.text


async def test_an_error_that_names_a_field_tells_it(client: httpx.AsyncClient, front: FrontDoor) -> None:
    reply = await client.get("/faults/field", headers=await front.headers_of("ann"))
    assert reply.status_code == 422
    assert reply.json()["error"] == {
        "code": "invalid_input",
        "message": "messages.0.content: is wrong",
        "details": {"field": "messages.0.content"},
    }


async def test_too_many_requests_says_when_to_come_back_in_whole_seconds(
    client: httpx.AsyncClient, front: FrontDoor
) -> None:
    reply = await client.get("/faults/rate", headers=await front.headers_of("ann"))
    assert (reply.status_code, reply.headers["retry-after"]) == (429, "2")


async def test_too_deep_a_recursion_is_the_callers_fault(client: httpx.AsyncClient, front: FrontDoor) -> None:
    reply = await client.get("/faults/depth", headers=await front.headers_of("ann"))
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "malformed_request")


async def test_a_broken_form_is_400(client: httpx.AsyncClient, front: FrontDoor) -> None:
    headers = {**await front.headers_of("ann"), "Content-Type": "multipart/form-data; boundary=x"}
    for reply in (
        await client.post("/uploads", content=b"--y\r\nno form", headers=headers),
        await client.get("/faults/form", headers=headers),
    ):
        assert (reply.status_code, reply.json()["error"]["code"]) == (400, "malformed_request")
        assert "own words" not in reply.text


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=x", "limit"),
        ("limit=1.5", "limit"),
        ("colour=red", "colour"),
        ("cursor=a%00b", "cursor"),
        ("a%00=1", "a?"),
        ("cursor=%FF", "cursor"),
        ("limit=3&cursor=%ED%A0%80", "cursor"),
    ],
)
async def test_query_faults_name_the_parameter(
    client: httpx.AsyncClient, front: FrontDoor, query: str, field: str
) -> None:
    reply = await client.get(f"/notes?{query}", headers=await front.headers_of("ann"))
    assert (reply.status_code, reply.json()["error"]["details"]) == (422, {"field": field})


async def test_known_query_parameters_arrive(client: httpx.AsyncClient, front: FrontDoor) -> None:
    reply = await client.get("/notes?limit=7&cursor=%E6%97%A9", headers=await front.headers_of("ann"))
    assert reply.json() == {"user_id": "ann", "limit": 7, "cursor": "早"}


async def test_nul_in_a_path_is_the_callers_fault(client: httpx.AsyncClient, front: FrontDoor) -> None:
    reply = await client.put("/notes/a%00b", json={"text": "a"}, headers=await front.headers_of("ann"))
    assert (reply.status_code, reply.json()["error"]["details"]) == (422, {"field": "path"})


@pytest.mark.parametrize("own", ["a", "A-b_9" * 12])
async def test_a_clients_own_request_id_comes_back(client: httpx.AsyncClient, own: str) -> None:
    reply = await client.get("/nowhere", headers={"X-Request-ID": own})
    assert reply.headers.get_list("x-request-id") == [own]
    assert reply.json()["request_id"] == own


@pytest.mark.parametrize("odd", ["", "a b", "a" * 65, "é", "a\tb", "<x>"])
async def test_an_odd_request_id_is_replaced(client: httpx.AsyncClient, odd: str) -> None:
    reply = await client.get("/nowhere", headers=[(b"X-Request-ID", odd.encode("latin-1"))])
    assert re.fullmatch(r"[0-9a-f-]{36}", reply.headers["x-request-id"])
    assert reply.json()["request_id"] == reply.headers["x-request-id"]


async def test_good_replies_carry_a_request_id_of_their_own(client: httpx.AsyncClient) -> None:
    first, second = await client.get("/health"), await client.get("/health")
    assert first.headers["x-request-id"] != second.headers["x-request-id"]
