"""Each call as the API page prints it: request, status, body with its fields in their order. Ids and times aside."""

import json
import re
from typing import Any

import httpx
import pytest

from tests.fakes.databases import AnyDatabase
from tests.fakes.memory_service import ServiceHouse

ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
NOBODY = "01980f5e-6f0a-7c3e-9a51-0d6d6f0f7a11"
SEVEN = "user_preference, personal_info, conversation, knowledge, event, task, relationship"
Json = dict[str, Any]


def shown(reply: httpx.Response) -> str:
    """The body as it came, ids and times replaced."""
    return TIME.sub("TIME", ID.sub("ID", reply.text))


def written(body: Json) -> str:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def entry(**fields: Any) -> Json:
    """A `MemoryEntry` with its fields in the order of the data model."""
    return {
        "id": "ID",
        "user_id": "ann",
        "content": "对花生过敏",
        "summary": "对花生过敏",
        "category": "knowledge",
        "priority": 1,
        "importance": 5,
        "keywords": [],
        "session_id": "",
        "source": "manual",
        "access_count": 0,
        "last_access": "TIME",
        "created_at": "TIME",
        "updated_at": "TIME",
    } | fields


def log(**fields: Any) -> Json:
    """A `ThinkingLog` with its fields in the order of the data model."""
    return {
        "id": "ID",
        "user_id": "admin",
        "content": "想一想",
        "tool_calls": "[]",
        "tool_call_count": 0,
        "content_length": 3,
        "created_at": "TIME",
    } | fields


async def saved(client: httpx.AsyncClient, content: str = "对花生过敏", **fields: Any) -> str:
    reply = await client.post("/api/v1/memories", json={"user_id": "ann", "content": content, **fields})
    assert reply.status_code == 201, reply.text
    memory_id: str = reply.json()["memory"]["id"]
    return memory_id


async def test_1_create_with_every_field(client: httpx.AsyncClient) -> None:
    given = {
        "summary": "过敏",
        "category": "personal_info",
        "priority": 2,
        "importance": 9,
        "keywords": ["过敏", "花生"],
        "session_id": "chat:1",
        "source": "conversation",
    }
    reply = await client.post("/api/v1/memories", json={"user_id": "ann", "content": "对花生过敏", **given})
    assert reply.status_code == 201
    assert shown(reply) == written({"status": "saved", "memory": entry(**given), "merged": False})


async def test_1_create_with_nothing_but_what_is_required(client: httpx.AsyncClient) -> None:
    reply = await client.post("/api/v1/memories", json={"user_id": "ann", "content": "对花生过敏"})
    assert reply.status_code == 201
    assert shown(reply) == written({"status": "saved", "memory": entry(), "merged": False})


async def test_1_an_end_is_shown_only_where_there_is_one(client: httpx.AsyncClient) -> None:
    body = {"user_id": "ann", "content": "对花生过敏", "expires_at": "2027-01-01T00:00:00Z"}
    reply = await client.post("/api/v1/memories", json=body)
    assert shown(reply) == written({"status": "saved", "memory": entry(expires_at="TIME"), "merged": False})


async def test_1_create_merges_what_is_similar(client: httpx.AsyncClient) -> None:
    first = await saved(client)
    reply = await client.post("/api/v1/memories", json={"user_id": "ann", "content": "对花生过敏"})
    assert (reply.status_code, reply.json()["memory"]["id"]) == (201, first)
    merged = {"memory": entry(source="merged"), "merged": True, "similarity": 1.0}
    assert shown(reply) == written({"status": "saved", **merged})


@pytest.mark.parametrize("body", [{}, {"user_id": "ann"}, {"content": "x"}, {"user_id": " ", "content": "x"}])
async def test_1_create_without_user_or_content(client: httpx.AsyncClient, house: ServiceHouse, body: Json) -> None:
    reply = await client.post("/api/v1/memories", json=body)
    assert (reply.status_code, reply.text) == (400, '{"error":"缺少 user_id 或 content"}')
    assert await house.rows() == []


async def test_2_list(client: httpx.AsyncClient) -> None:
    await saved(client)
    reply = await client.get("/api/v1/memories", params={"user_id": "ann"})
    assert reply.status_code == 200
    assert shown(reply) == written({"user_id": "ann", "memories": [entry()], "total": 1})


async def test_2_list_takes_every_parameter(client: httpx.AsyncClient) -> None:
    await saved(client, "周五发布", category="event", importance=7)
    await saved(client, "每天看早报", category="event", importance=6)
    await saved(client, "设备放在C盘", category="event", importance=2)
    await saved(client, "喜欢喝茶", category="user_preference", importance=9)
    query = {"user_id": "ann", "category": "event", "min_importance": "3", "limit": "1", "offset": "1"}
    reply = await client.get("/api/v1/memories", params=query)
    memories = [entry(content="每天看早报", summary="每天看早报", category="event", importance=6)]
    assert shown(reply) == written({"user_id": "ann", "memories": memories, "total": 2})


async def test_2_list_gives_fifty_unless_told_otherwise(client: httpx.AsyncClient) -> None:
    for number in range(51):
        await saved(client, f"{chr(0x4E00 + 7 * number) * 2}{number}")
    body = (await client.get("/api/v1/memories?user_id=ann&category=")).json()
    assert (len(body["memories"]), body["total"]) == (50, 51)


async def test_3_get(client: httpx.AsyncClient) -> None:
    memory_id = await saved(client)
    reply = await client.get(f"/api/v1/memories/{memory_id}")
    assert (reply.status_code, shown(reply)) == (200, written({"memory": entry()}))


async def test_3_get_of_an_unknown_id(client: httpx.AsyncClient) -> None:
    for memory_id in (NOBODY, "x", "a%2e%2e", "记忆"):
        reply = await client.get(f"/api/v1/memories/{memory_id}")
        assert (reply.status_code, reply.text) == (404, '{"error":"记忆不存在"}')


async def test_4_update(client: httpx.AsyncClient) -> None:
    memory_id = await saved(client)
    changes = {
        "content": "新内容",
        "summary": "新摘要",
        "category": "event",
        "priority": 2,
        "importance": 8,
        "keywords": ["新标签"],
        "source": "conversation",
    }
    reply = await client.put(f"/api/v1/memories/{memory_id}", json=changes)
    assert (reply.status_code, reply.text) == (200, written({"status": "updated", "memory_id": memory_id}))
    assert shown(await client.get(f"/api/v1/memories/{memory_id}")) == written({"memory": entry(**changes)})


async def test_4_update_of_an_unknown_id(client: httpx.AsyncClient) -> None:
    reply = await client.put(f"/api/v1/memories/{NOBODY}", json={"importance": 8})
    assert (reply.status_code, reply.text) == (404, '{"error":"记忆不存在"}')


@pytest.mark.parametrize("field", ["user_id", "session_id", "id", "access_count"])
async def test_4_what_cannot_be_updated(client: httpx.AsyncClient, field: str) -> None:
    memory_id = await saved(client)
    reply = await client.put(f"/api/v1/memories/{memory_id}", json={field: "x", "importance": 8})
    assert (reply.status_code, reply.text) == (400, written({"error": f"请求格式错误: {field}: unknown field"}))
    assert (await client.get(f"/api/v1/memories/{memory_id}")).json()["memory"]["importance"] == 5


async def test_5_delete_whether_it_exists_or_not(client: httpx.AsyncClient) -> None:
    memory_id = await saved(client)
    for _ in range(2):
        reply = await client.delete(f"/api/v1/memories/{memory_id}")
        assert (reply.status_code, reply.text) == (200, written({"status": "deleted", "memory_id": memory_id}))
        assert (await client.get(f"/api/v1/memories/{memory_id}")).status_code == 404


async def test_6_query(client: httpx.AsyncClient) -> None:
    await saved(client, category="personal_info")
    await saved(client, "花生酱在冰箱里", importance=2)
    body = {"user_id": "ann", "query_text": "花生", "category": "personal_info", "min_importance": 3, "limit": 10}
    reply = await client.post("/api/v1/memories/query", json=body)
    assert reply.status_code == 200
    memories = [entry(category="personal_info")]
    assert shown(reply) == written({"user_id": "ann", "query": "花生", "memories": memories, "total": 1})


async def test_6_query_without_words_gives_ten_of_all(client: httpx.AsyncClient) -> None:
    for number in range(12):
        await saved(client, f"{chr(0x4E00 + 7 * number) * 2}{number}")
    body = (await client.post("/api/v1/memories/query", json={"user_id": "ann"})).json()
    assert (body["query"], len(body["memories"]), body["total"]) == ("", 10, 12)


async def test_7_consolidate(client: httpx.AsyncClient) -> None:
    first, second = await saved(client, "门禁码是4471"), await saved(client, "完全不同的一句话")
    await client.put(f"/api/v1/memories/{second}", json={"content": "门禁码是4471"})
    reply = await client.post("/api/v1/memories/consolidate", json={"user_id": "ann"})
    assert reply.status_code == 200
    assert reply.text == written({"status": "consolidated", "user_id": "ann", "merged": 1, "message": "记忆整理完成"})
    kept = (await client.get("/api/v1/memories?user_id=ann")).json()["memories"]
    assert [(memory["id"], memory["source"], memory["importance"]) for memory in kept] == [(first, "consolidated", 6)]


async def test_8_decay(client: httpx.AsyncClient, house: ServiceHouse) -> None:
    await saved(client, "很少想起的事", importance=2)
    await saved(client, "临时的一句话", priority=0)
    house.clock.forward(seconds=31 * 86_400)
    answer = {"status": "decayed", "user_id": "ann", "decayed": 1, "deleted": 2, "message": "记忆衰减完成"}
    for body, left in (({"dry_run": True}, 2), ({}, 0)):
        reply = await client.post("/api/v1/memories/decay", json={"user_id": "ann", **body})
        assert (reply.status_code, reply.text) == (200, written(answer))
        assert (await client.get("/api/v1/memories?user_id=ann")).json()["total"] == left


async def test_9_categories(client: httpx.AsyncClient) -> None:
    await saved(client, "门禁码是4471")
    await saved(client, "周五发布", category="event")
    await saved(client, "每天看早报", category="event")
    reply = await client.get("/api/v1/memories/categories", params={"user_id": "ann"})
    assert reply.status_code == 200
    assert reply.json() == {"user_id": "ann", "categories": {"knowledge": 1, "event": 2}}
    assert list(reply.json()) == ["user_id", "categories"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/memories"),
        ("GET", "/memories/categories"),
        ("POST", "/memories/query"),
        ("POST", "/memories/consolidate"),
        ("POST", "/memories/decay"),
    ],
)
@pytest.mark.parametrize("absent", [{}, {"user_id": ""}, {"user_id": " \t"}])
async def test_2_6_7_8_9_need_a_user(client: httpx.AsyncClient, method: str, path: str, absent: Json) -> None:
    given: Json = {"params": absent} if method == "GET" else {"json": absent}
    reply = await client.request(method, f"/api/v1{path}", **given)
    assert (reply.status_code, reply.text) == (400, '{"error":"缺少 user_id"}')


async def test_10_create_thinking_with_every_field(client: httpx.AsyncClient) -> None:
    given = {"user_id": "ann", "tool_calls": '[{"name":"search"}]', "tool_call_count": 1, "content_length": 3}
    reply = await client.post("/api/v1/thinking", json={"content": "想一想", **given})
    assert (reply.status_code, shown(reply)) == (201, written({"status": "saved", "thinking": log(**given)}))


async def test_10_create_thinking_with_content_alone(client: httpx.AsyncClient) -> None:
    reply = await client.post("/api/v1/thinking", json={"content": "想一想"})
    assert (reply.status_code, shown(reply)) == (201, written({"status": "saved", "thinking": log()}))


async def test_10_create_thinking_without_content(client: httpx.AsyncClient) -> None:
    reply = await client.post("/api/v1/thinking", json={"user_id": "ann"})
    assert (reply.status_code, reply.text) == (400, '{"error":"缺少 content"}')


async def test_11_list_thinking(client: httpx.AsyncClient) -> None:
    for name in ("ann", "anna"):
        await client.post("/api/v1/thinking", json={"user_id": name, "content": "想一想"})
    reply = await client.get("/api/v1/thinking?user_id=ann&limit=20&offset=0")
    assert (reply.status_code, shown(reply)) == (200, written({"logs": [log(user_id="ann")], "total": 1}))


async def test_12_get_thinking(client: httpx.AsyncClient) -> None:
    log_id = (await client.post("/api/v1/thinking", json={"content": "想一想"})).json()["thinking"]["id"]
    reply = await client.get(f"/api/v1/thinking/{log_id}")
    assert (reply.status_code, shown(reply)) == (200, written({"thinking": log()}))


async def test_12_get_thinking_of_an_unknown_id(client: httpx.AsyncClient) -> None:
    reply = await client.get(f"/api/v1/thinking/{NOBODY}")
    assert (reply.status_code, reply.text) == (404, '{"error":"思考日志不存在"}')


async def test_13_thinking_stats(client: httpx.AsyncClient) -> None:
    await client.post("/api/v1/thinking", json={"content": "想一想", "tool_calls": "[1,2]"})
    await client.post("/api/v1/thinking", json={"content": "想想"})
    for query in ("", "?user_id=admin"):
        reply = await client.get(f"/api/v1/thinking/stats{query}")
        assert reply.status_code == 200
        assert shown(reply) == written(
            {"total_logs": 2, "total_tool_calls": 2, "avg_content_length": 2.5, "latest_at": "TIME"}
        )


async def test_14_health(client: httpx.AsyncClient, database: AnyDatabase) -> None:
    reply = await client.get("/api/v1/health")
    assert (reply.status_code, reply.text) == (200, '{"status":"ok","service":"memory-service"}')
    await database.close()
    reply = await client.get("/api/v1/health")
    assert (reply.status_code, reply.text) == (200, '{"status":"degraded","service":"memory-service"}')


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/memories"), ("PUT", f"/memories/{NOBODY}"), ("POST", "/memories/query")]
)
async def test_an_unknown_category_is_told_the_seven(client: httpx.AsyncClient, method: str, path: str) -> None:
    body = {"category": "knowlege"} | ({} if method == "PUT" else {"user_id": "ann"})
    reply = await client.request(
        method, f"/api/v1{path}", json=body | ({"content": "x"} if path == "/memories" else {})
    )
    assert (reply.status_code, reply.json()) == (400, {"error": f"请求格式错误: category: must be one of {SEVEN}"})


async def test_an_unknown_category_in_a_list_is_told_the_seven(client: httpx.AsyncClient) -> None:
    reply = await client.get("/api/v1/memories?user_id=ann&category=knowlege")
    assert (reply.status_code, reply.json()) == (400, {"error": f"请求格式错误: category: must be one of {SEVEN}"})


async def test_an_unknown_source_is_told_the_four(client: httpx.AsyncClient) -> None:
    reply = await client.post("/api/v1/memories", json={"user_id": "ann", "content": "x", "source": "web"})
    error = "请求格式错误: source: must be one of conversation, manual, merged, consolidated"
    assert (reply.status_code, reply.json()) == (400, {"error": error})
