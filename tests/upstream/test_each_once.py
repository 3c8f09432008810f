"""What EverOS would lose or remember twice, because it does not look at what a message says."""

import asyncio
from typing import Any

import pytest

from memory_gateway.engine.schemas import AddRequest, Caller, FlushRequest, Message
from memory_gateway.kit.errors import NotFound, StorageUnavailable
from memory_gateway.storage.sqlite import SqliteDatabase
from memory_gateway.upstream.each_once import REMEMBERED_MS, EachOnce
from tests.fakes.clock import TurnedClock
from tests.fakes.everos_memory import EverosMemory
from tests.fakes.house import House, Json, User

AT = 1_780_000_000_000


def said(text: str, at: int = AT, **more: Any) -> Json:
    return {"sender_id": "ann", "role": "user", "timestamp": at, "content": text, **more}


def sent_times(everos: EverosMemory) -> list[list[tuple[str, int]]]:
    """What went out, request by request."""
    return [[(one["content"], one["timestamp"]) for one in body["messages"]] for body in everos.sent("add")]


# Two messages of the same millisecond.


async def test_two_requests_of_one_millisecond_lose_no_message(everos: EverosMemory, ann: User) -> None:
    for text in ("The cat is black.", "The dog is white.", "The owl is grey."):
        response = await ann.add(said(text))
        assert response.json()["data"] == {"message_count": 1, "status": "accumulated"}
    assert everos.buffered() == ["The cat is black.", "The dog is white.", "The owl is grey."]
    assert sent_times(everos)[1:] == [[("The dog is white.", AT + 1)], [("The owl is grey.", AT + 2)]]


async def test_messages_of_one_request_keep_their_millisecond(everos: EverosMemory, ann: User) -> None:
    await ann.add(said("one"), said("two"), said("one"))
    assert everos.buffered() == ["one", "two", "one"]
    assert [time for _, time in sent_times(everos)[0]] == [AT] * 3


async def test_what_comes_after_a_moved_message_moves_along(everos: EverosMemory, ann: User) -> None:
    await ann.add(said("before"))
    await ann.add(said("one"), said("two"), said("three", AT + 1), said("four", AT + 5), said("zero", AT - 7))
    assert sent_times(everos)[1] == [
        ("one", AT + 1),
        ("two", AT + 1),
        ("three", AT + 1),
        ("four", AT + 5),
        ("zero", AT - 7),
    ]
    assert everos.buffered() == ["zero", "before", "one", "two", "three", "four"]


async def test_a_message_pushed_on_by_one_that_stands_behind_it_stays_behind_it(
    everos: EverosMemory, ann: User
) -> None:
    await ann.add(said("x"), said("taken"))
    await ann.add(said("later", AT + 1), said("first"))
    assert everos.buffered() == ["x", "taken", "first", "later"]
    assert sent_times(everos)[1] == [("later", AT + 2), ("first", AT + 1)]


async def test_seconds_move_on_by_seconds_where_milliseconds_cannot_be_told(everos: EverosMemory, ann: User) -> None:
    for text in ("a", "b"):
        await ann.add(said(text, 1_780_000_000))
        await ann.add(said(text, 900_000_000))
    assert sent_times(everos) == [
        [("a", 1_780_000_000)],
        [("a", 900_000_000)],
        [("b", 1_780_000_000_001)],
        [("b", 900_000_001)],
    ]


async def test_another_session_app_or_user_is_in_nobodys_way(house: House, everos: EverosMemory, ann: User) -> None:
    anna = await house.user("anna")
    await ann.add(said("one"))
    await ann.add(said("two"), chat="2")
    await ann.add(said("three"), app_id="shop")
    await anna.add({**said("four"), "sender_id": "anna"}, chat="a_b")
    await anna.add({**said("five"), "sender_id": "anna"}, chat="axb")
    assert [time for ((_, time),) in sent_times(everos)] == [AT] * 5


async def test_only_the_time_of_a_moved_message_is_written_anew(everos: EverosMemory, house: House, ann: User) -> None:
    await ann.add(said("before"))
    first = b'{"content": "caf\\u00e9 \\/ 1.0","role":"user" ,"sender_id":"ann","timestamp":1780000000000}'
    second = b'{"timestamp" : 1780000009000, "content":"\\u56fe","sender_id":"ann","role":"user"}'
    body = b'{"conversation_id":"1","messages":[' + first + b" ,\n" + second + b"]}"
    response = await house.client.post(
        "/memories/add", content=body, headers={**ann.headers, "Content-Type": "application/json"}
    )
    assert response.status_code == 200
    moved = b'{"content":"caf\\u00e9 \\/ 1.0","role":"user","sender_id":"ann","timestamp":1780000000001}'
    assert everos.requests[-1].content.endswith(b'"messages":[' + moved + b"," + second + b"]}")


# The same message again.


async def test_a_request_repeated_after_extraction_is_remembered_once(everos: EverosMemory, ann: User) -> None:
    messages = [said("The ferry leaves at nine."), said("And at ten.", AT + 1)]
    for _ in range(3):
        again = await ann.add(*messages)
        assert (again.status_code, again.json()["data"]) == (200, {"message_count": 2, "status": "accumulated"})
        assert (await ann.flush()).status_code == 200
    assert everos.remembered == ["The ferry leaves at nine. / And at ten."]
    assert len(everos.sent("add")) == 1


async def test_of_a_history_sent_whole_each_time_only_the_new_goes_out(everos: EverosMemory, ann: User) -> None:
    history: list[Json] = []
    for number, text in enumerate(["one", "two", "three"]):
        history.append(said(text, AT + number))
        response = await ann.add(*history)
        assert response.json()["data"]["message_count"] == number + 1
        await ann.flush()
    assert everos.remembered == ["one", "two", "three"]


@pytest.mark.parametrize("change", [{"timestamp": AT + 1}, {"content": "Yes!"}, {"sender_name": "Ann"}])
async def test_what_differs_at_all_is_another_message(everos: EverosMemory, ann: User, change: Json) -> None:
    await ann.add(said("Yes."))
    await ann.add({**said("Yes."), **change})
    assert len(everos.buffered()) == 2


async def test_a_repeat_that_comes_while_the_first_is_answered_waits_for_it(house: House, ann: User) -> None:
    upstream, entered, gate = house.upstream, asyncio.Event(), asyncio.Event()
    assert isinstance(upstream, EachOnce)
    everos = upstream._upstream
    send, calls = everos.add, 0

    async def slow(request: AddRequest, caller: Caller) -> Any:
        nonlocal calls
        calls += 1
        entered.set()
        await gate.wait()
        return await send(request, caller)

    everos.add = slow  # type: ignore[method-assign]
    first = asyncio.create_task(ann.add(said("one")))
    await entered.wait()
    repeat = asyncio.create_task(ann.add(said("one")))
    other = asyncio.create_task(ann.add(said("two")))
    await asyncio.sleep(0.1)
    gate.set()
    assert [(await task).status_code for task in (first, repeat, other)] == [200, 200, 200]
    assert calls == 2


# When EverOS fails.


async def test_after_an_answer_that_never_came_the_repeat_has_the_same_names(everos: EverosMemory, ann: User) -> None:
    await ann.add(said("before"))
    everos.fail("add", "no answer")
    messages = [said("one"), said("two")]
    assert (await ann.add(*messages)).status_code == 502
    await ann.add(said("between"))
    assert (await ann.add(*messages)).status_code == 200
    assert sent_times(everos)[1] == sent_times(everos)[3]
    assert sorted(everos.buffered()) == ["before", "between", "one", "two"]


@pytest.mark.parametrize("fault", ["refused", "model away", "garbage"])
async def test_an_add_that_failed_is_sent_again(everos: EverosMemory, ann: User, fault: Any) -> None:
    everos.fail("add", fault)
    assert (await ann.add(said("one"))).status_code in {500, 502}
    assert (await ann.add(said("one"))).status_code == 200
    assert everos.buffered() == ["one"]


async def test_what_is_queued_may_be_sent_again_as_it_may_still_fail(everos: EverosMemory, ann: User) -> None:
    everos.fail("add", "queued")
    assert (await ann.add(said("one"))).status_code == 202
    assert (await ann.add(said("one"))).status_code == 200
    assert everos.buffered() == ["one"]


async def test_what_everos_threw_away_at_a_flush_reaches_it_again(everos: EverosMemory, ann: User) -> None:
    await ann.add(said("kept", AT - 1))
    await ann.flush()
    messages = [said("one"), said("two")]
    await ann.add(*messages)
    everos.fail("flush", "extraction failed")
    assert (await ann.flush()).status_code == 500
    await ann.add(said("kept", AT - 1))
    await ann.add(*messages)
    await ann.flush()
    assert everos.remembered == ["kept", "one / two"]


async def test_a_flush_without_an_answer_is_not_a_reason_to_remember_twice(everos: EverosMemory, ann: User) -> None:
    await ann.add(said("one"))
    everos.fail("flush", "no answer")
    assert (await ann.flush()).status_code == 502
    await ann.add(said("one"))
    await ann.flush()
    assert everos.remembered == ["one"]


async def test_an_add_that_cannot_be_noted_beforehand_is_not_sent(
    everos: EverosMemory, clock: TurnedClock, database: SqliteDatabase
) -> None:
    upstream = EachOnce(everos.upstream(), database, clock)
    await database.close()
    with pytest.raises(StorageUnavailable):
        await upstream.add(AddRequest("chat:1", (Message("ann", "user", AT, "one"),)), Caller(user_id="ann"))
    assert everos.requests == []


# What is kept.


async def test_after_a_week_a_message_is_forgotten(everos: EverosMemory, ann: User, clock: TurnedClock) -> None:
    await ann.add(said("one"))
    clock.now_ms += REMEMBERED_MS - 1
    await ann.add(said("one"))
    assert len(everos.sent("add")) == 1
    clock.now_ms += 1
    await ann.add(said("one"))
    assert len(everos.sent("add")) == 2


async def test_it_is_exported_and_erased_with_its_user(
    house: House, everos: EverosMemory, ann: User, database: SqliteDatabase
) -> None:
    anna = await house.user("anna")
    await ann.add(said("secret words"))
    await anna.add({**said("other words"), "sender_id": "anna"}, chat="2")
    kept = [one async for one in house.upstream.export("ann", []) if one["kind"] == "sent_message"]
    assert [(one["session_id"], one["timestamp_ms"], one["state"]) for one in kept] == [("chat:1", AT, "arrived")]
    assert "secret" not in str(kept)
    assert (await house.client.delete("/users/ann", headers=ann.headers)).status_code == 200
    assert await database.fetch("SELECT user_id FROM sent_messages") == [("anna",)]
    request = AddRequest("chat:1", (Message("ann", "user", AT, "late"),))
    with pytest.raises(NotFound):
        await house.upstream.add(request, Caller(user_id="ann"))
    assert len(everos.sent("add")) == 2


async def test_a_caller_without_a_user_is_handed_on(house: House, everos: EverosMemory) -> None:
    bare = Caller(user_id=None)
    request = AddRequest("chat:1", (Message("ann", "user", AT, "one"),))
    assert (await house.upstream.add(request, bare)).status == "accumulated"
    assert (await house.upstream.flush(FlushRequest("chat:1"), bare)).status == "extracted"
    assert await house.database.fetch("SELECT 1 FROM sent_messages") == []


def test_everything_else_is_the_upstreams_own(house: House) -> None:
    assert house.upstream.name == "everos"
    assert house.upstream.traits.opens_client_uris is True
