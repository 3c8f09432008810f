from typing import Any

import httpx
import pytest

from tests.fakes.front_door import FrontDoor

JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
async def test_a_json_endpoint_takes_nothing_but_json(
    client: httpx.AsyncClient, front: FrontDoor, content_type: str
) -> None:
    headers = {**await front.headers_of("ann"), "Content-Type": content_type}
    reply = await client.post("/notes", content=b'{"text":"a"}', headers=headers)
    assert (reply.status_code, reply.json()["error"]["code"]) == (415, "unsupported_format")


async def test_json_with_a_charset_is_json(client: httpx.AsyncClient, front: FrontDoor) -> None:
    headers = {**await front.headers_of("ann"), "Content-Type": "application/json; charset=utf-8"}
    assert (await client.post("/notes", content=b'{"text":"a"}', headers=headers)).json()["text"] == "a"


@pytest.mark.parametrize(
    ("content", "status", "details"),
    [
        (b"", 422, {"field": "body"}),
        (b"{", 400, None),
        (rb'{"text":"\u0000"}', 422, {"field": "text"}),
        (rb'{"text":"\ud800"}', 422, {"field": "text"}),
        (b'{"text":"a","extras":' + b"[" * 20_000 + b"]" * 20_000 + b"}", 400, None),
    ],
    ids=["empty", "cut", "NUL", "surrogate", "too deep"],
)
async def test_bad_bodies_are_the_callers_fault(
    client: httpx.AsyncClient, front: FrontDoor, content: bytes, status: int, details: dict[str, Any] | None
) -> None:
    headers = {**await front.headers_of("ann"), **JSON}
    reply = await client.post("/notes", content=content, headers=headers)
    assert (reply.status_code, reply.json()["error"].get("details")) == (status, details)


async def test_a_body_above_the_limit_is_413(client: httpx.AsyncClient, front: FrontDoor) -> None:
    headers = {**await front.headers_of("ann"), **JSON}
    reply = await client.post("/notes", content=b'{"text":"' + b"a" * 100_000 + b'"}', headers=headers)
    assert (reply.status_code, reply.json()["error"]["code"]) == (413, "payload_too_large")


async def test_a_body_that_announces_too_much_is_not_read(front: FrontDoor) -> None:
    app, sent = front.app(), []
    headers = [(name.lower().encode(), value.encode()) for name, value in (await front.headers_of("ann")).items()]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/notes",
        "query_string": b"",
        "root_path": "",
        "headers": [*headers, (b"content-type", b"application/json"), (b"content-length", b"100001")],
    }

    async def receive() -> Any:
        raise AssertionError("the body was read")

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)  # type: ignore[arg-type]
    assert sent[0]["status"] == 413
