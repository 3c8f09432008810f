"""What a database cannot keep in an index, or at all, is refused or kept whole: it is never a fault of the server."""

import random
from typing import Any

import httpx
import pytest

MEMORIES, THINKING = "/api/v1/memories", "/api/v1/thinking"
USER = "".join(random.Random(1).choices("😀😁😂🤣😃😄😅😆", k=64))


def noise(length: int) -> str:
    """Characters of four bytes that nothing can compress."""
    numbers = random.Random(length)
    return "".join(chr(numbers.randrange(0x20000, 0x2A6DF)) for _ in range(length))


async def test_the_longest_of_everything_is_kept_whole(client: httpx.AsyncClient) -> None:
    long = {"summary": noise(3000), "session_id": noise(3000), "keywords": [noise(3000), "x" * 3000]}
    saved = await client.post(MEMORIES, json={"user_id": USER, "content": noise(5000), **long})
    assert saved.status_code == 201, saved.text
    memory = saved.json()["memory"]
    assert (memory["content"], memory["summary"], memory["session_id"]) == (noise(5000), noise(3000), noise(3000))
    found = await client.post(f"{MEMORIES}/query", json={"user_id": USER, "query_text": noise(5000)[:900]})
    assert [one["id"] for one in found.json()["memories"]] == [memory["id"]]
    log = await client.post(
        THINKING, json={"user_id": USER, "content": noise(5000), "tool_calls": f'["{noise(3000)}"]'}
    )
    assert log.status_code == 201, log.text
    listed = await client.get(THINKING, params={"user_id": USER})
    assert listed.json() == {"logs": [log.json()["thinking"]], "total": 1}


@pytest.mark.parametrize("path", [MEMORIES, THINKING])
@pytest.mark.parametrize("entry_id", ["x" * 5000, "%F0%9F%98%80" * 500, "%EF%BF%BD", "0" * 36, "-" * 36])
async def test_no_id_is_too_strange_to_be_unknown(client: httpx.AsyncClient, path: str, entry_id: str) -> None:
    assert (await client.get(f"{path}/{entry_id}")).status_code == 404
    if path == MEMORIES:
        assert (await client.put(f"{path}/{entry_id}", json={"importance": 3})).status_code == 404
        assert (await client.delete(f"{path}/{entry_id}")).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", f"{MEMORIES}/a%00b", None),
        ("DELETE", f"{MEMORIES}/a%00b", None),
        ("GET", f"{THINKING}/a%00b", None),
        ("GET", f"{MEMORIES}?user_id=a%00b", None),
        ("GET", f"{THINKING}?user_id=a%00b", None),
        ("GET", f"{THINKING}/stats?user_id=a%00b", None),
        ("POST", MEMORIES, '{"user_id": "ann", "content": "a\\u0000b"}'),
        ("POST", MEMORIES, '{"user_id": "ann", "content": "a", "keywords": ["a\\u0000b"]}'),
        ("POST", MEMORIES, '{"user_id": "ann", "content": "a", "session_id": "\\ud800"}'),
        ("POST", MEMORIES, '{"user_id": "a\\u0000b", "content": "a"}'),
        ("POST", f"{MEMORIES}/query", '{"user_id": "ann", "query_text": "a\\u0000b"}'),
        ("POST", f"{MEMORIES}/consolidate", '{"user_id": "a\\u0000b"}'),
        ("POST", f"{MEMORIES}/decay", '{"user_id": "a\\ud800b"}'),
        ("POST", THINKING, '{"content": "a\\u0000b"}'),
        ("POST", THINKING, '{"content": "a", "tool_calls": "[\\u0000]"}'),
        ("POST", THINKING, '{"content": "a", "user_id": "\\ud800"}'),
    ],
)
async def test_what_no_text_can_hold_is_refused(
    client: httpx.AsyncClient, method: str, path: str, body: str | None
) -> None:
    headers = {"Content-Type": "application/json"}
    reply = await client.request(method, path, content=None if body is None else body.encode(), headers=headers)
    assert reply.status_code == 400
    assert "NUL" in reply.json()["error"]


async def test_numbers_beyond_a_columns_are_clamped_or_refused(client: httpx.AsyncClient) -> None:
    huge = 10**30
    fields: dict[str, Any] = {"priority": huge, "importance": -huge}
    saved = await client.post(MEMORIES, json={"user_id": "ann", "content": "tea", **fields})
    assert saved.status_code == 201
    assert (saved.json()["memory"]["priority"], saved.json()["memory"]["importance"]) == (10, 1)
    query = {"user_id": "ann", "query_text": "tea", "min_importance": huge}
    found = await client.post(f"{MEMORIES}/query", json=query)
    assert (found.status_code, found.json()["memories"]) == (200, [])
    for path in (f"{MEMORIES}?user_id=ann&min_importance={huge}", f"{MEMORIES}?user_id=ann&offset={huge}"):
        assert (await client.get(path)).status_code == 400
    assert (await client.post(THINKING, json={"content": "a", "content_length": huge})).status_code == 400
