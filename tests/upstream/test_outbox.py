"""What EverOS cannot take now is kept, and reaches it in order and once."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from memory_gateway.kit.ids import uuid7_id
from memory_gateway.server import open_upstream
from memory_gateway.settings import Settings
from memory_gateway.storage.leases import Leases
from memory_gateway.storage.sqlite import SqliteDatabase
from memory_gateway.upstream import outbox as outboxes
from memory_gateway.upstream.each_once import EachOnce
from memory_gateway.upstream.outbox import MOST_REFUSALS, MOST_TRIES, Outbox
from tests.fakes.clock import TurnedClock
from tests.fakes.everos_memory import EverosMemory
from tests.fakes.house import House, Json, User

OUTBOX = "SELECT user_id, tries, error FROM outbox ORDER BY id"
HOUR = 3_600


@pytest.fixture
def outbox(database: SqliteDatabase, everos: EverosMemory, clock: TurnedClock) -> Outbox:
    return new_outbox(database, everos, clock, "one")


@pytest.fixture
async def house(database: SqliteDatabase, tmp_path: Path, outbox: Outbox) -> AsyncIterator[House]:
    house = House(database, tmp_path, outbox)
    yield house
    await house.close()


def new_outbox(database: SqliteDatabase, everos: EverosMemory, clock: TurnedClock, holder: str) -> Outbox:
    each_once = EachOnce(everos.upstream(timeout=0.3), database, clock)
    return Outbox(each_once, database, clock, uuid7_id, Leases(database, clock, holder))


async def sent_all(outbox: Outbox, clock: TurnedClock) -> int:
    """Send until nothing is due, after the longest pause."""
    clock.forward(seconds=HOUR)
    sent = 0
    while now := await outbox.send_due():
        sent += now
    return sent


def data(response: Any) -> tuple[int, Json]:
    return response.status_code, response.json()["data"]


@pytest.mark.parametrize("fault", ["refused", "hanging", "no answer", "garbage", "model away"])
async def test_what_everos_cannot_take_is_queued_and_arrives_once_in_order(
    everos: EverosMemory, ann: User, outbox: Outbox, clock: TurnedClock, fault: Any
) -> None:
    assert (await ann.add("zero")).status_code == 200
    everos.fault = fault
    assert data(await ann.add("one", "two")) == (202, {"message_count": 2, "status": "queued"})
    everos.fault = None
    assert data(await ann.add("three")) == (202, {"message_count": 1, "status": "queued"})
    assert data(await ann.flush()) == (202, {"status": "queued"})
    assert data(await ann.add("four"))[0] == 202
    assert (await ann.add("at once", chat="2")).status_code == 200
    assert await sent_all(outbox, clock) == 4
    assert everos.remembered == ["zero / one / two / three"]
    assert everos.buffered() == ["four"]
    assert data(await ann.add("five"))[0] == 200


async def test_the_bytes_go_out_as_the_client_wrote_them(
    house: House, everos: EverosMemory, ann: User, outbox: Outbox, clock: TurnedClock
) -> None:
    messages = b'[ {"content":"caf\\u00e9 \xe5\x9b\xbe","role":"user" ,"sender_id":"ann","timestamp":1780000000000}]'
    everos.fail("add", "refused")
    response = await house.client.post(
        "/memories/add",
        content=b'{"conversation_id":"1","messages":' + messages + b"}",
        headers={**ann.headers, "Content-Type": "application/json"},
    )
    assert response.status_code == 202
    await sent_all(outbox, clock)
    assert everos.requests[-1].content.endswith(b'"messages":' + messages + b"}")


async def test_a_try_in_vain_is_followed_by_a_longer_pause(
    everos: EverosMemory, ann: User, outbox: Outbox, clock: TurnedClock, database: SqliteDatabase
) -> None:
    everos.fault = "refused"
    await ann.add("one")
    await ann.add("two")
    pauses = []
    for _ in range(4):
        everos.requests.clear()
        waited = 0
        while not everos.requests:
            clock.forward(seconds=1)
            waited += 1
            await outbox.send_due()
        pauses.append(waited)
    assert pauses == [5, 5, 10, 20]
    assert [tries for _, tries, _ in await database.fetch(OUTBOX)] == [4, 0]


async def test_a_crash_after_sending_does_not_send_twice(
    everos: EverosMemory,
    ann: User,
    outbox: Outbox,
    clock: TurnedClock,
    database: SqliteDatabase,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    everos.fail("add", "refused")
    await ann.add("one")
    clock.forward(seconds=HOUR)

    class Crash(BaseException):
        pass

    async def crash(*_: object) -> None:
        raise Crash

    with monkeypatch.context() as patch, pytest.raises(Crash):
        patch.setattr(outbox, "_write", crash)
        await outbox.send_due()
    assert everos.buffered() == ["one"]
    await ann.flush()
    assert await sent_all(new_outbox(database, everos, clock, "two"), clock) == 2
    assert everos.remembered == ["one"]


async def test_two_processes_do_not_send_at_the_same_time(
    everos: EverosMemory, ann: User, outbox: Outbox, clock: TurnedClock, database: SqliteDatabase
) -> None:
    everos.fail("add", "refused")
    await ann.add("one")
    clock.forward(seconds=HOUR)
    assert await Leases(database, clock, "another").acquire("outbox", seconds=60)
    assert await outbox.send_due() == 0
    await Leases(database, clock, "another").release("outbox")
    assert await outbox.send_due() == 1


async def test_in_its_context_it_sends_by_itself(
    everos: EverosMemory, ann: User, outbox: Outbox, clock: TurnedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outboxes, "_LOOK_AGAIN_SECONDS", 0.01)
    everos.fail("add", "refused")
    await ann.add("one")
    async with outbox, asyncio.timeout(5):
        clock.forward(seconds=10)
        while not everos.buffered():
            await asyncio.sleep(0.01)
    assert everos.buffered() == ["one"]


# What is not kept.


async def test_what_is_the_requests_own_fault_is_told_at_once(
    house: House, everos: EverosMemory, ann: User, database: SqliteDatabase
) -> None:
    assert (await ann.add(ann.says("x", timestamp=0))).status_code == 422
    assert await database.fetch(OUTBOX) == []


@pytest.mark.parametrize(("fault", "most"), [("model away", MOST_REFUSALS), ("refused", MOST_TRIES)])
async def test_what_is_never_taken_is_given_up_and_holds_up_nothing_more(
    everos: EverosMemory, ann: User, outbox: Outbox, clock: TurnedClock, database: SqliteDatabase, fault: Any, most: int
) -> None:
    everos.fault = fault
    await ann.add("one")
    await ann.add("two")
    for _ in range(most):
        assert await sent_all(outbox, clock) == 0
    ((_, tries, error), (_, _, waits)) = await database.fetch(OUTBOX)
    assert (tries, error is None, waits) == (most, False, None)
    everos.fault = None
    assert await sent_all(outbox, clock) == 1
    assert everos.buffered() == ["two"]
    (given_up,) = [one async for one in outbox.export("ann", []) if one["kind"] == "outbox"]
    assert (given_up["messages"][0]["content"], given_up["error"]) == ("one", error)


async def test_a_full_outbox_gives_the_error_of_everos(
    everos: EverosMemory, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outboxes, "MOST_OF_A_USER", 2)
    everos.fault = "refused"
    assert [(await ann.add("x", chat=chat)).status_code for chat in "1122"] == [202, 202, 502, 502]
    assert (await ann.add("x", chat="1")).status_code == 429


async def test_a_request_that_is_too_large_is_not_kept(
    everos: EverosMemory, ann: User, database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outboxes, "LONGEST", 1_000)
    everos.fault = "refused"
    assert (await ann.add("x" * 1_000)).status_code == 502
    assert (await ann.add("x")).status_code == 202
    assert (await ann.add("x" * 1_000)).status_code == 413
    assert len(await database.fetch(OUTBOX)) == 1


async def test_a_file_is_tried_again_by_the_gateway_itself(
    everos: EverosMemory, ann: User, database: SqliteDatabase
) -> None:
    everos.fault = "refused"
    uploaded = await ann.upload("notes.txt", b"The ferry leaves at nine.")
    assert uploaded.json()["resource"]["status"] == "stored"
    assert await database.fetch(OUTBOX) == []


# Whose it is.


async def test_nobodys_waiting_holds_up_another(
    house: House, everos: EverosMemory, ann: User, outbox: Outbox, clock: TurnedClock
) -> None:
    anna = await house.user("anna")
    everos.fail("add", "refused")
    await ann.add("one")
    assert (await anna.add("mine", chat="a")).status_code == 200
    health = (await house.client.get("/health")).json()
    assert health["upstream"]["details"]["outbox"] == 1
    assert [one async for one in outbox.export("anna", []) if one["kind"] == "outbox"] == []
    assert (await house.client.delete("/users/ann", headers=ann.headers)).status_code == 200
    assert await sent_all(outbox, clock) == 0
    assert [body["messages"][0]["content"] for body in everos.sent("add")] == ["one", "mine"]


@pytest.mark.parametrize(("setting", "kind"), [(False, EachOnce), (True, Outbox)])
async def test_the_server_has_one_where_the_settings_say_so(
    database: SqliteDatabase, *, setting: bool, kind: type
) -> None:
    async with open_upstream(Settings(upstream="everos", outbox=setting), database) as upstream:
        assert type(upstream) is kind
