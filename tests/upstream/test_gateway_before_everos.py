"""The whole gateway before an EverOS that fails: every answer comes in time, nothing is half done, and it mends."""

import asyncio
import base64
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memory_gateway.storage.port import Database
from memory_gateway.storage.sqlite import SqliteDatabase
from memory_gateway.upstream.each_once import EachOnce
from memory_gateway.upstream.everos import EverosUpstream
from tests.fakes import items
from tests.fakes.everos import EMPTY
from tests.fakes.everos_memory import EverosMemory
from tests.fakes.house import House, Json, User
from tests.upstream.conftest import Listen

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\nnot really").decode()
WITHIN_SECONDS = 4.0


def error(reply: Any) -> tuple[int, str]:
    return reply.status_code, reply.json()["error"]["code"]


async def calls(ann: User) -> list[tuple[int, str]]:
    """An add with a file, a flush, a search in every scope, a file: what each of them says while EverOS is away."""
    picture = ann.says([{"type": "image", "base64": PNG, "name": "board.png"}])
    replies = await asyncio.gather(
        ann.add(picture, chat="new"),
        ann.flush(),
        ann.ask("tea", scope=["current_chat", "all_user_memory"], conversation_id="1"),
    )
    return [error(reply) for reply in replies]


async def health_of(house: House) -> Json:
    reply = await house.client.get("/health")
    assert reply.status_code == 200
    health: Json = reply.json()
    return health


def stored_files(house: House) -> list[Path]:
    return [path for path in house.storage_root.rglob("*") if path.is_file()]


async def count(database: Database, table: str) -> int:
    ((number,),) = await database.fetch(f"SELECT COUNT(*) FROM {table}")
    return int(number)


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("refused", (502, "upstream_unreachable")),
        ("no answer", (502, "upstream_unreachable")),
        ("garbage", (502, "upstream_unreachable")),
        ("hanging", (504, "upstream_timeout")),
    ],
)
async def test_the_gateway_outlives_everos_and_finds_it_again(
    house: House, everos: EverosMemory, ann: User, fault: Any, expected: tuple[int, str]
) -> None:
    assert (await ann.add("I like tea.")).status_code == 200
    everos.fault = fault
    started = time.monotonic()
    assert await calls(ann) == [expected] * 3
    degraded = await health_of(house)
    assert (degraded["status"], degraded["upstream"]["healthy"]) == ("degraded", False)
    assert time.monotonic() - started < WITHIN_SECONDS
    assert stored_files(house) == []
    assert await count(house.database, "memory_attachments") == 0
    assert await count(house.database, "file_intents") == 0
    everos.fault = None
    assert (await health_of(house))["status"] == "ok"
    assert (await ann.add("And cake.")).status_code == 200
    assert (await ann.flush()).status_code == 200
    assert len(await ann.search("tea")) == 1


async def test_many_who_wait_for_a_hanging_everos_are_all_answered_in_time(
    house: House, everos: EverosMemory, ann: User
) -> None:
    everos.fault = "hanging"
    started = time.monotonic()
    replies = await asyncio.gather(*(ann.ask("tea") for _ in range(150)), *(ann.add("tea") for _ in range(50)))
    assert {error(reply) for reply in replies} == {(504, "upstream_timeout")}
    assert time.monotonic() - started < WITHIN_SECONDS
    everos.fault = None
    assert (await ann.ask("tea")).status_code == 200


async def test_a_models_outage_leaves_nothing_half_done_and_its_words_stay_inside(
    house: House, everos: EverosMemory, ann: User
) -> None:
    everos.fail("add", "model away")
    picture = ann.says([{"type": "image", "base64": PNG, "name": "board.png"}])
    refused = await ann.add(picture)
    assert refused.json()["error"] == {
        "code": "upstream_error",
        "message": "the memory system failed",
        "details": {"upstream": {"code": "INTERNAL_ERROR"}},
    }
    assert stored_files(house) == []
    assert await count(house.database, "memory_attachments") == 0
    assert (await ann.add(picture)).status_code == 200
    assert [path.name for path in stored_files(house)] == ["board.png"]
    assert len(everos.buffers[("default", "default", "chat:1")]) == 1


async def test_a_queued_add_is_a_202(everos: EverosMemory, ann: User) -> None:
    everos.fail("add", "queued")
    everos.fail("flush", "queued")
    added, flushed = await ann.add("I like tea."), await ann.flush()
    assert (added.status_code, added.json()["data"]) == (202, {"message_count": 1, "status": "queued"})
    assert (flushed.status_code, flushed.json()["data"]) == (202, {"status": "queued"})


async def test_an_unread_message_is_shown_without_its_payload_which_stays_in_raw(
    database: SqliteDatabase, tmp_path: Path, listen: Listen
) -> None:
    waiting = items.unprocessed_message("m", content=[{"type": "image", "base64": PNG, "name": "board.png"}])
    async with asyncio.timeout(10):
        answers: list[Json] = [
            {"message_count": 1, "status": "accumulated"},
            {**EMPTY, "unprocessed_messages": [waiting]},
        ]
        house = House(database, tmp_path, EachOnce(EverosUpstream(await listen(serving(answers))), database, lambda: 1))
        ann = await house.user("ann")
        assert (await ann.add("I like tea.")).status_code == 200
        (found,) = await ann.search("tea", scope="current_chat", conversation_id="1")
        assert (found["text"], found["score"]) == ("[IMAGE: board.png]", None)
        assert found["raw"] == waiting
        await house.close()
        await house.upstream.close()


async def test_everos_dying_in_the_midst_of_an_add_is_a_502_and_the_next_one_serves(
    database: SqliteDatabase, tmp_path: Path, listen: Listen
) -> None:
    """Over a socket: it takes the request, says half of its answer, and is gone."""
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await request_of(reader)
        writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 80\r\n\r\n{"request_id":"1","data":{"mess')
        if connections == 2:
            writer.write(b'age_count":1,"status":"accumulated"}}'.ljust(80 - 31))
        await writer.drain()

    house = House(database, tmp_path, EachOnce(EverosUpstream(await listen(serve), timeout=2.0), database, lambda: 1))
    ann = await house.user("ann")
    message = ann.says("I like tea.")
    async with asyncio.timeout(WITHIN_SECONDS):
        assert error(await ann.add(message)) == (502, "upstream_unreachable")
        again = await ann.add(message)
    assert (again.status_code, again.json()["data"]["status"]) == (200, "accumulated")
    assert connections == 2
    await house.close()
    await house.upstream.close()


def serving(answers: list[Json]) -> Any:
    """Answers one request a connection, in order."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        body = msgspec.json.encode({"data": answers.pop(0)})
        head = f"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()

    return serve


async def request_of(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
