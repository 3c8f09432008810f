from typing import Any

import httpx
import pytest

from tests.fakes.memory_service import ServiceHouse

PATH = "/api/v1/thinking"


async def think(client: httpx.AsyncClient, content: str = "t", **fields: Any) -> dict[str, Any]:
    reply = await client.post(PATH, json={"content": content, **fields})
    assert reply.status_code == 201, reply.text
    log: dict[str, Any] = reply.json()["thinking"]
    return log


async def test_lengths_and_counts_are_computed_when_they_are_absent_or_zero(client: httpx.AsyncClient) -> None:
    log = await think(client, "检查了 3 封邮件 😀", tool_calls='[{"name":"read_mail"}, {"name":"reply"}]')
    assert (log["content_length"], log["tool_call_count"]) == (11, 2)
    assert log["tool_calls"] == '[{"name":"read_mail"}, {"name":"reply"}]'
    zeros = await think(client, "four", tool_calls="[1]", tool_call_count=0, content_length=0)
    assert (zeros["content_length"], zeros["tool_call_count"]) == (4, 1)


async def test_given_lengths_and_counts_are_kept(client: httpx.AsyncClient) -> None:
    log = await think(client, "shortened", tool_calls="[1]", tool_call_count=9, content_length=12_000)
    assert (log["content_length"], log["tool_call_count"]) == (12_000, 9)


@pytest.mark.parametrize("absent", [{}, {"user_id": None}, {"user_id": ""}, {"user_id": "  "}])
async def test_without_a_user_a_log_is_the_admins(client: httpx.AsyncClient, absent: dict[str, Any]) -> None:
    log = await think(client, **absent, tool_calls=None)
    assert (log["user_id"], log["tool_calls"], log["tool_call_count"]) == ("admin", "[]", 0)
    for query in ("", "?user_id=", "?user_id=admin"):
        assert (await client.get(PATH + query)).json() == {"logs": [log], "total": 1}


@pytest.mark.parametrize("tool_calls", ["{}", "null", "[1", "no", "[" * 100_000, "[NaN]", '"[]"', "[] []"])
async def test_tool_calls_must_be_a_json_array(client: httpx.AsyncClient, house: ServiceHouse, tool_calls: str) -> None:
    reply = await client.post(PATH, json={"content": "t", "tool_calls": tool_calls[:50_000]})
    assert reply.status_code == 400
    assert reply.json() == {"error": "请求格式错误: tool_calls: must be a JSON array in a string"}
    assert await house.rows() == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "缺少 content"),
        ({"content": None}, "缺少 content"),
        ({"content": " \n"}, "缺少 content"),
        ({"content": 5}, "请求格式错误: content: Expected `str | null`, got `int`"),
        ({"content": "t", "tool_calls": []}, "请求格式错误: tool_calls: Expected `str | null`, got `array`"),
        ({"content": "t", "tool_call_count": -1}, "请求格式错误: tool_call_count: Expected `int` >= 0"),
        ({"content": "t", "content_length": 2**31}, "请求格式错误: content_length: Expected `int` <= 2147483647"),
        ({"content": "t", "colour": "red"}, "请求格式错误: colour: unknown field"),
        ({"content": "t", "user_id": "u" * 65}, "请求格式错误: user_id: at most 64 characters"),
    ],
)
async def test_a_bad_log_is_refused_and_not_kept(
    client: httpx.AsyncClient, house: ServiceHouse, fields: dict[str, Any], message: str
) -> None:
    reply = await client.post(PATH, json=fields)
    assert (reply.status_code, reply.json()) == (400, {"error": message})
    assert await house.rows() == []


async def test_the_list_is_newest_first_also_within_one_moment_and_is_cut_by_limit_and_offset(
    client: httpx.AsyncClient, house: ServiceHouse
) -> None:
    written = []
    for number in range(25):
        house.clock.forward(seconds=number % 2)
        written.append((await think(client, f"thought {number}", user_id="ann"))["content"])
    newest = written[::-1]

    async def page(query: str = "") -> list[str]:
        body = (await client.get(f"{PATH}?user_id=ann{query}")).json()
        assert body["total"] == 25
        return [log["content"] for log in body["logs"]]

    assert await page() == newest[:20]
    assert await page("&limit=5&offset=18") == newest[18:23]
    assert await page("&limit=500") == newest
    assert await page("&offset=25") == []


@pytest.mark.parametrize(
    ("query", "field"),
    [("limit=0", "limit"), ("limit=501", "limit"), ("limit=x", "limit"), ("offset=-1", "offset"), ("page=2", "page")],
)
async def test_a_bad_page_is_refused(client: httpx.AsyncClient, query: str, field: str) -> None:
    reply = await client.get(f"{PATH}?{query}")
    assert reply.status_code == 400
    assert reply.json()["error"].startswith(f"请求格式错误: {field}: ")


@pytest.mark.parametrize("user_id", ["ann", "anna", "Ann", "a_b", "axb", "%", "张三", "a b+c&d", "😀"])
async def test_users_with_similar_names_never_see_each_other(client: httpx.AsyncClient, user_id: str) -> None:
    for number, name in enumerate(["ann", "anna", "Ann", "a_b", "axb", "%", "张三", "a b+c&d", "😀"]):
        await think(client, f"of {name}", user_id=name, content_length=number + 1)
    listed = (await client.get(PATH, params={"user_id": user_id})).json()
    assert ([log["content"] for log in listed["logs"]], listed["total"]) == ([f"of {user_id}"], 1)
    assert (await client.get(f"{PATH}/stats", params={"user_id": user_id})).json()["total_logs"] == 1


async def test_stats_cover_one_user_or_all(client: httpx.AsyncClient, house: ServiceHouse) -> None:
    await think(client, "one", user_id="ann", tool_calls="[1,2]")
    house.clock.forward(seconds=60)
    await think(client, "three", user_id="ann")
    house.clock.forward(seconds=60)
    await think(client, "sixsix", user_id="anna", tool_calls="[1]")
    assert (await client.get(f"{PATH}/stats?user_id=ann")).json() == {
        "total_logs": 2,
        "total_tool_calls": 2,
        "avg_content_length": 4.0,
        "latest_at": "2026-05-28T20:27:40.000Z",
    }
    for of_all in ("", "?user_id=", "?user_id=%20"):
        assert (await client.get(f"{PATH}/stats{of_all}")).json() == {
            "total_logs": 3,
            "total_tool_calls": 3,
            "avg_content_length": pytest.approx(14 / 3),
            "latest_at": "2026-05-28T20:28:40.000Z",
        }


async def test_stats_without_logs_are_zeros_and_the_average_is_still_a_fraction(client: httpx.AsyncClient) -> None:
    for query in ("", "?user_id=nobody"):
        reply = await client.get(f"{PATH}/stats{query}")
        assert reply.text == '{"total_logs":0,"total_tool_calls":0,"avg_content_length":0.0,"latest_at":""}'


async def test_an_export_holds_every_log_oldest_first_and_an_erasure_leaves_only_the_others(
    client: httpx.AsyncClient, house: ServiceHouse
) -> None:
    for number in range(450):
        await think(client, f"thought {number}", user_id="ann")
    kept = await think(client, "of anna", user_id="anna")
    exported = [row async for row in house.thinking.export("ann")]
    assert [row["content"] for row in exported] == [f"thought {number}" for number in range(450)]
    assert exported[0].keys() == {"kind", *kept}
    assert {row["kind"] for row in exported} == {"thinking_log"}
    await house.thinking.erase("ann")
    await house.thinking.erase("ann")
    assert [row async for row in house.thinking.export("ann")] == []
    assert [row async for row in house.thinking.export("anna")] == [{"kind": "thinking_log", **kept}]
