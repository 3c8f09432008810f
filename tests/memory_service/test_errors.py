import asyncio
import logging
import re
from typing import Any, cast

import httpx
import pytest

from memory_gateway.kit.errors import StorageUnavailable
from memory_gateway.storage.port import Transaction
from tests.fakes.databases import AnyDatabase
from tests.fakes.memory_service import MAX_BODY_BYTES, ServiceHouse

JSON = {"Content-Type": "application/json"}
NEW = {"user_id": "ann", "content": "x"}
CALLS: list[tuple[str, str, dict[str, Any] | None]] = [
    ("POST", "/memories", NEW),
    ("GET", "/memories?user_id=ann", None),
    ("GET", "/memories/x", None),
    ("PUT", "/memories/x", {"content": "y"}),
    ("DELETE", "/memories/x", None),
    ("POST", "/memories/query", {"user_id": "ann", "query_text": "x"}),
    ("POST", "/memories/consolidate", {"user_id": "ann"}),
    ("POST", "/memories/decay", {"user_id": "ann"}),
    ("GET", "/memories/categories?user_id=ann", None),
    ("POST", "/thinking", {"content": "x"}),
    ("GET", "/thinking", None),
    ("GET", "/thinking/x", None),
    ("GET", "/thinking/stats", None),
]
"""Every call but health."""

METHODS = {
    "/memories": {"GET", "POST"},
    "/memories/x": {"GET", "PUT", "DELETE"},
    "/memories/query": {"POST"},
    "/memories/consolidate": {"POST"},
    "/memories/decay": {"POST"},
    "/memories/categories": {"GET"},
    "/thinking": {"GET", "POST"},
    "/thinking/x": {"GET"},
    "/thinking/stats": {"GET"},
    "/health": {"GET"},
}


@pytest.mark.parametrize(("path", "allowed"), METHODS.items())
async def test_a_wrong_method_is_405_and_allow_says_which_are_right(
    client: httpx.AsyncClient, path: str, allowed: set[str]
) -> None:
    for method in {"GET", "POST", "PUT", "PATCH", "DELETE"} - allowed:
        reply = await client.request(method, f"/api/v1{path}")
        assert (reply.status_code, reply.text) == (405, '{"error":"method not allowed"}')
        assert set(reply.headers["allow"].split(", ")) == allowed | {"OPTIONS"}


@pytest.mark.parametrize(
    "path", ["/", "/api/v1", "/api/v2/memories", "/memories", "/api/v1/memories/a/b", "/api/v1/Memories", "/docs"]
)
async def test_an_unknown_path_is_404(client: httpx.AsyncClient, path: str) -> None:
    for method in ("GET", "POST", "DELETE"):
        reply = await client.request(method, path)
        assert (reply.status_code, reply.text) == (404, '{"error":"not found"}')


@pytest.mark.parametrize(("method", "path", "body"), CALLS)
async def test_a_database_that_is_gone_is_500_in_the_words_of_the_api(
    client: httpx.AsyncClient,
    database: AnyDatabase,
    caplog: pytest.LogCaptureFixture,
    method: str,
    path: str,
    body: dict[str, Any] | None,
) -> None:
    await database.close()
    with caplog.at_level(logging.ERROR):
        reply = await client.request(method, f"/api/v1{path}", json=body)
    assert (reply.status_code, reply.text) == (500, '{"error":"数据库错误"}')
    assert reply.headers["x-request-id"] in caplog.text


@pytest.mark.parametrize(("method", "path", "body"), CALLS)
async def test_what_the_database_says_never_leaves_the_house(
    client: httpx.AsyncClient, house: ServiceHouse, method: str, path: str, body: dict[str, Any] | None
) -> None:
    tables = await house.tables()

    async def break_it(transaction: Transaction) -> None:
        for table in tables:
            await transaction.execute(f"DROP TABLE {table}")

    await house.database.write(break_it)
    reply = await client.request(method, f"/api/v1{path}", json=body)
    assert (reply.status_code, reply.text) == (500, '{"error":"数据库错误"}')


async def test_a_bug_is_500_logged_with_the_request_id_and_never_quoted(
    client: httpx.AsyncClient,
    house: ServiceHouse,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail(_log_id: str) -> None:
        raise RuntimeError("secret of /var/lib/gateway")

    monkeypatch.setattr(house.thinking, "get", fail)
    with caplog.at_level(logging.ERROR):
        reply = await client.get("/api/v1/thinking/x")
    assert (reply.status_code, reply.text) == (500, '{"error":"内部错误"}')
    assert "secret of /var/lib/gateway" in caplog.text
    assert reply.headers["x-request-id"] in caplog.text


async def test_health_gives_a_database_that_hangs_a_second(
    client: httpx.AsyncClient, database: AnyDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(_work: object) -> None:
        await asyncio.sleep(30)

    monkeypatch.setattr(database, "read", hang)
    started = asyncio.get_running_loop().time()
    assert (await client.get("/api/v1/health")).text == '{"status":"degraded","service":"memory-service"}'
    assert 0.9 < asyncio.get_running_loop().time() - started < 3


async def test_health_is_degraded_when_the_database_cannot_be_read(
    client: httpx.AsyncClient, database: AnyDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_work: object) -> None:
        raise StorageUnavailable("the database cannot serve this request now")

    monkeypatch.setattr(database, "read", fail)
    assert (await client.get("/api/v1/health")).json()["status"] == "degraded"


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", "body: required"),
        (b"{", "body: the body is not valid JSON in UTF-8"),
        (b'{"user_id":"ann","content":"\xff"}', "body: the body is not valid JSON in UTF-8"),
        (b'{"user_id":"ann","content":NaN}', "body: the body is not valid JSON in UTF-8"),
        (b"[" * 40_000 + b"]" * 40_000, "body: "),
        (b'{"user_id":"ann","content":"x","keywords":' + b"[" * 20_000 + b"]" * 20_000 + b"}", "keywords"),
        (b'{"user_id":"ann","content":"x","colour":' + b"[" * 20_000 + b"]" * 20_000 + b"}", ""),
        (b"[]", "body: Expected `object`, got `array`"),
        (b"null", "body: Expected `object`, got `null`"),
        (b'{"user_id":5,"content":"x"}', "user_id: Expected `str | null`, got `int`"),
        (b'{"user_id":"ann","content":["x"]}', "content: Expected `str | null`, got `array`"),
        (b'{"user_id":"ann","content":"x","priority":"1"}', "priority: Expected `int | null`, got `str`"),
        (b'{"user_id":"ann","content":"x","importance":5.5}', "importance: Expected `int | null`, got `float`"),
        (b'{"user_id":"ann","content":"x","keywords":["a",1]}', "keywords.1: Expected `str`, got `int`"),
        (b'{"user_id":"ann","content":"x","colour":"red"}', "colour: unknown field"),
        (rb'{"user_id":"a\u0000","content":"x"}', "user_id: NUL and lone surrogates are not allowed"),
        (rb'{"user_id":"ann","content":"x\ud800"}', "content: NUL and lone surrogates are not allowed"),
        (rb'{"user_id":"ann","content":"x","keywords":["a","\u0000"]}', "keywords.1: NUL and lone surrogates"),
        (rb'{"user_id":"ann","content":"x","k\u0000":1}', "k"),
    ],
)
async def test_a_bad_body_is_told_what_and_where_and_changes_nothing(
    client: httpx.AsyncClient, house: ServiceHouse, content: bytes, error: str
) -> None:
    reply = await client.post("/api/v1/memories", content=content, headers=JSON)
    assert reply.status_code == 400
    assert reply.json()["error"].startswith(f"请求格式错误: {error}")
    assert reply.json().keys() == {"error"}
    assert await house.rows() == []


async def test_a_body_above_the_limit_is_413_and_changes_nothing(
    client: httpx.AsyncClient, house: ServiceHouse
) -> None:
    async def chunks() -> Any:
        yield b'{"content":"'
        for _ in range(MAX_BODY_BYTES // 1000):
            yield b"x" * 1000
        yield b'"}'

    for content in (b'{"content":"' + b"x" * MAX_BODY_BYTES + b'"}', chunks()):
        reply = await client.post("/api/v1/thinking", content=content, headers=JSON)
        assert (reply.status_code, reply.json()) == (413, {"error": "请求格式错误: the body is too large"})
    assert await house.rows() == []


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("user_id=ann&limit=0", "limit: "),
        ("user_id=ann&limit=1001", "limit: "),
        ("user_id=ann&limit=ten", "limit: "),
        ("user_id=ann&limit=", "limit: "),
        ("user_id=ann&limit=99999999999999999999", "limit: "),
        ("user_id=ann&offset=-1", "offset: "),
        ("user_id=ann&offset=99999999999999999999", "offset: "),
        ("user_id=ann&min_importance=x", "min_importance: "),
        ("user_id=ann&min_importance=99999999999999999999", "min_importance: "),
        ("user_id=ann&colour=red", "colour: unknown field"),
        ("user_id=a%00", "user_id: NUL and lone surrogates are not allowed"),
        ("user_id=%ED%A0%80", "user_id: not valid UTF-8"),
        ("user_id=%FF", "user_id: not valid UTF-8"),
        ("user_id=" + "u" * 65, "user_id: at most 64 characters"),
    ],
)
async def test_a_bad_query_string_is_told_what_and_where(client: httpx.AsyncClient, query: str, error: str) -> None:
    reply = await client.get(f"/api/v1/memories?{query}")
    assert reply.status_code == 400
    assert reply.json()["error"].startswith(f"请求格式错误: {error}")


@pytest.mark.parametrize("value", [10**30, -(10**30)])
async def test_numbers_beyond_the_databases_are_no_fault_of_it(client: httpx.AsyncClient, value: int) -> None:
    body = {**NEW, "priority": value, "importance": value}
    memory = (await client.post("/api/v1/memories", json=body)).json()["memory"]
    assert (memory["priority"], memory["importance"]) == ((10, 10) if value > 0 else (0, 1))
    reply = await client.post("/api/v1/memories/query", json={"user_id": "ann", "min_importance": value})
    assert reply.status_code in {200, 400}


@pytest.mark.parametrize("user_id", ["张" * 64, "😀" * 64, "../b", "a b", "%", "'; --", "e\u0301"])
async def test_a_user_id_may_be_any_text_of_up_to_64_characters(client: httpx.AsyncClient, user_id: str) -> None:
    assert (await client.post("/api/v1/memories", json={"user_id": user_id, "content": "x"})).status_code == 201
    body = (await client.get("/api/v1/memories", params={"user_id": user_id})).json()
    assert (body["user_id"], body["total"]) == (user_id, 1)


async def test_nul_in_an_id_is_the_callers_fault(client: httpx.AsyncClient) -> None:
    for method, given in (("GET", {}), ("DELETE", {}), ("PUT", {"json": {"content": "x"}})):
        reply = await client.request(method, "/api/v1/memories/a%00b", **cast("dict[str, Any]", given))
        assert (reply.status_code, reply.json()) == (
            400,
            {"error": "请求格式错误: path: NUL and lone surrogates are not allowed"},
        )


async def test_every_reply_is_json_and_says_how_long_it_is(client: httpx.AsyncClient) -> None:
    replies = [
        await client.get("/api/v1/health"),
        await client.get("/nowhere"),
        await client.post("/api/v1/thinking", json={"content": "想一想"}),
        await client.post("/api/v1/thinking", json={}),
    ]
    assert [reply.status_code for reply in replies] == [200, 404, 201, 400]
    for reply in replies:
        assert reply.headers["content-type"] == "application/json"
        assert int(reply.headers["content-length"]) == len(reply.content)
        assert reply.json()


async def test_every_reply_carries_a_request_id(client: httpx.AsyncClient) -> None:
    for path in ("/api/v1/health", "/nowhere", "/api/v1/memories"):
        assert re.fullmatch(r"[0-9a-f-]{36}", (await client.get(path)).headers["x-request-id"])
    own = await client.get("/api/v1/health", headers={"X-Request-ID": "mine"})
    assert own.headers["x-request-id"] == "mine"


async def test_a_client_that_goes_away_is_no_fault_of_the_service(
    house: ServiceHouse, caplog: pytest.LogCaptureFixture
) -> None:
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/v1/thinking",
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"content-length", b"99")],
    }
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    with caplog.at_level(logging.WARNING):
        await house.app()(scope, receive, send)  # type: ignore[arg-type]
    assert sent[0]["status"] == 400
    assert caplog.records == []
