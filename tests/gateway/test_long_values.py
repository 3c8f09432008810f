"""What a database cannot keep in an index, or at all, is refused or kept whole: it is never a fault of the server."""

import base64
import json
import random
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from memory_gateway.settings import Settings
from memory_gateway.upstream.embedded import EmbeddedUpstream, open_engine
from tests.fakes.databases import AnyDatabase
from tests.fakes.house import House, Json, User

LONGEST_URI = 8192
requests = count()


def noise(length: int, seed: int = 0) -> str:
    """Characters of four bytes that nothing can compress."""
    numbers = random.Random(f"{length} {seed}")
    return "".join(chr(numbers.randrange(0x20000, 0x2A6DF)) for _ in range(length))


def letters(length: int, seed: int = 0) -> str:
    return "".join(random.Random(f"{length} {seed}").choices("abcdefghijklmnopqrstuvwxyz0123456789", k=length))


@pytest.fixture
async def house(database: AnyDatabase, tmp_path: Path) -> AsyncIterator[House]:
    """Over the real engine, which reads documents."""
    settings = Settings(data_dir=tmp_path)
    async with open_engine(settings, database, None, holder="test") as engine:
        house = House(database, tmp_path, EmbeddedUpstream(engine, settings))
        yield house
        await house.close()


@pytest.fixture
async def ann(house: House) -> User:
    return await house.user("ann")


async def answered(ann: User, *messages: Json, **body: Any) -> Json:
    sent = {"session_id": noise(128), "messages": list(messages), **body}
    reply = await ann.post("/memories/add", sent, **{"Idempotency-Key": letters(255, next(requests))})
    assert reply.status_code == 200, reply.text
    answer: Json = reply.json()
    return answer


async def test_the_longest_names_of_everything_are_kept(ann: User, database: AnyDatabase) -> None:
    place = {"app_id": letters(128, 1), "project_id": letters(128, 2)}
    said = f"{letters(20_000)} {noise(2000)} jasmine"
    await answered(ann, ann.says(said, sender_name=noise(128)), **place)
    flushed = await ann.post("/memories/flush", {"session_id": noise(128), **place})
    assert flushed.status_code == 200, flushed.text
    found = await ann.ask("jasmine", **place)
    assert [one["session_id"] for one in found.json()["results"]] == [noise(128)]
    rows = await database.fetch("SELECT content FROM engine_messages")
    assert [json.loads(content) for (content,) in rows] == [said]


async def test_a_skill_of_many_long_calls_is_learnt(ann: User, database: AnyDatabase) -> None:
    """The names of the calls, in order, are what skills are looked up by."""
    for number, ending in enumerate(("one", "one", "two")):
        calls = [{"id": f"c{place}", "function": {"name": noise(254, place), "arguments": "{}"}} for place in range(20)]
        calls.append({"id": "last", "function": {"name": ending, "arguments": "{}"}})
        session = {"session_id": f"task {number}"}
        await answered(
            ann,
            ann.says("please write the report of the month"),
            ann.says("", sender_id="bot", role="assistant", tool_calls=calls),
            *[ann.says("ok", sender_id="tool", role="tool", tool_call_id=call["id"]) for call in calls],
            ann.says("The report is written.", sender_id="bot", role="assistant"),
            **session,
            app_id=f"app{number // 3}",
        )
        assert (await ann.post("/memories/flush", {**session, "app_id": f"app{number // 3}"})).status_code == 200
    rows = await database.fetch("SELECT skill_no, LENGTH(pattern) FROM engine_cases ORDER BY segment_no")
    assert [skill_no for skill_no, _ in rows] == [0, 0, 2]
    assert min(length for _, length in rows) > 5000


async def test_long_uris_are_told_apart_and_equal_ones_are_one(ann: User, database: AnyDatabase) -> None:
    uri = f"https://example.org/{letters(LONGEST_URI - 25)}.png"
    other = f"{uri[:-5]}_.png"
    assert other != uri
    for sent in (uri, other, uri):
        await answered(ann, ann.says([{"type": "image", "uri": sent, "name": "a.png"}]), session_id=noise(128))
        await ann.post("/memories/flush", {"session_id": noise(128)})
    rows = await database.fetch("SELECT internal_uri FROM memory_attachments WHERE user_id = 'ann'")
    assert sorted(stored for (stored,) in rows) == sorted({uri, other})
    too_long = [{"type": "image", "uri": f"https://example.org/{letters(LONGEST_URI)}"}]
    refused = await ann.post("/memories/add", {"session_id": "s", "messages": [ann.says(too_long)]})
    assert (refused.status_code, refused.json()["error"]["details"]["field"]) == (422, "messages.0.content.0.uri")


@pytest.mark.parametrize("content", [b"jasmine\0tea", "jasmine\0tea".encode("utf-16")])
async def test_a_text_file_with_nul_in_it_is_read_without(ann: User, house: House, content: bytes) -> None:
    name = "😀" * 62 + ".txt"
    files = {"file": (name, content)}
    reply = await house.client.post("/resources", files=files, data={"title": noise(500)}, headers=ann.headers)
    assert reply.status_code == 201, reply.text
    sent = base64.b64encode(content).decode()
    await answered(ann, ann.says([{"type": "doc", "base64": sent, "name": name}]))
    await ann.post("/memories/flush", {"session_id": noise(128)})
    found = await ann.ask("jasmine")
    assert found.status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/resources?cursor=" + base64.urlsafe_b64encode(b"2026-05-28T20:26:40.000Z a\0b").decode(), None),
        ("GET", "/resources?app_id=a%00b", None),
        ("GET", "/resources/a%00b", None),
        ("DELETE", "/resources/a%00b", None),
        ("DELETE", "/memories/a%00b?memory_type=episode", None),
        ("PUT", "/memories/a?memory_type=episode", '{"text": "a\\u0000b"}'),
        ("POST", "/memories/search", '{"query": "a\\u0000b"}'),
        ("POST", "/memories/search", '{"query": "a", "filters": {"session_id": "a\\u0000b"}}'),
        ("POST", "/memories/search", '{"query": "a", "agent_id": "\\ud800"}'),
        ("POST", "/memories/flush", '{"session_id": "a\\u0000b"}'),
        ("POST", "/memories/flush", '{"session_id": "a\\ud800b"}'),
    ],
)
async def test_what_no_text_can_hold_is_refused(
    house: House, ann: User, method: str, path: str, body: str | None
) -> None:
    headers = {**ann.headers, "Content-Type": "application/json"}
    content = None if body is None else body.encode()
    reply = await house.client.request(method, path, content=content, headers=headers)
    assert reply.status_code in {400, 422}, reply.text


@pytest.mark.parametrize("field", ["sender_name", "tool_call_id", "content"])
@pytest.mark.parametrize("text", ["a\\u0000b", "a\\ud800b"])
async def test_a_message_that_no_text_can_hold_is_refused(house: House, ann: User, field: str, text: str) -> None:
    message = {**ann.says("x"), field: "HERE"}
    body = str({"session_id": "s", "messages": [message]}).replace("'", '"').replace("HERE", text)
    headers = {**ann.headers, "Content-Type": "application/json"}
    reply = await house.client.post("/memories/add", content=body.encode(), headers=headers)
    assert reply.status_code == 422, reply.text


@pytest.mark.parametrize("name", ["\0", "a\0b", "\ud800", "x" * 10_000])
async def test_a_name_that_nobody_has_is_a_401(house: House, ann: User, name: str) -> None:
    raw = name.encode("utf-8", "surrogatepass")
    headers = [(b"X-User-ID", raw), (b"X-User-Key", raw)]
    assert (await house.client.get("/resources", headers=headers)).status_code == 401
    texts = {"user_id": name.encode("utf-8", "replace").decode(), "user_key": "x"}
    assert (await house.client.post("/memories/search", json={**texts, "query": "x"})).status_code == 401


async def test_ids_of_any_length_are_unknown(ann: User, house: House) -> None:
    for length in (512, 513, 5000):
        memory_id = noise(length)
        for path in (f"/memories/{memory_id}?memory_type=episode", f"/resources/{memory_id}"):
            assert (await house.client.delete(path, headers=ann.headers)).status_code == 404, length
