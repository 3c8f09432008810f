"""A text file on its way to EverOS, which never splits a message: its language model would get it whole."""

import asyncio
import base64

import pytest

from memory_gateway.gateway.resources import tries
from memory_gateway.gateway.resources.parts import PART_CHARS, PARTS_AT_ONCE
from tests.fakes.everos_memory import EverosMemory
from tests.fakes.house import House, Json, User

LINES = [f"Line {number} says that the ferry leaves at {number % 24}." for number in range(3_000)]
LONG = "\n".join(LINES).encode()
START = 1_780_000_000_000


async def upload(ann: User, content: bytes, name: str = "timetable.txt") -> Json:
    response = await ann.upload(name, content)
    assert response.status_code == 201, response.text
    resource: Json = response.json()["resource"]
    return resource


async def indexed(house: House, ann: User, resource_id: str) -> tuple[str, str | None]:
    async with asyncio.timeout(10):
        while True:
            found = (await house.client.get(f"/resources/{resource_id}", headers=ann.headers)).json()
            if found["status"] != "stored":
                return found["status"], found["error"]
            await asyncio.sleep(0.01)


async def test_a_long_text_goes_in_several_messages_in_its_order(house: House, everos: EverosMemory, ann: User) -> None:
    resource = await upload(ann, LONG)
    assert resource["status"] == "stored"  # its requests may take longer than a client waits
    assert await indexed(house, ann, resource["id"]) == ("indexed", None)
    bodies = everos.sent("add")
    messages = [message for body in bodies for message in body["messages"]]
    assert {body["session_id"] for body in bodies} == {resource["session_id"]}
    assert max(len(body["messages"]) for body in bodies) == PARTS_AT_ONCE
    assert [message["timestamp"] for message in messages] == list(range(START, START + len(messages)))
    label = "[DOC: timetable.txt]\n"
    assert all(message["content"].startswith(label) for message in messages)
    parts = [message["content"].removeprefix(label) for message in messages]
    assert max(map(len, parts)) <= PART_CHARS
    assert "\n".join(parts).splitlines() == LINES
    assert len(everos.sent("flush")) == 1
    assert len(everos.remembered) == 1


async def test_its_memory_leads_to_the_file(house: House, ann: User) -> None:
    resource = await upload(ann, LONG)
    await indexed(house, ann, resource["id"])
    (found,) = await ann.search("ferry", scope="resources")
    assert found["resource_id"] == resource["id"]
    assert [one["name"] for one in found["attachments"]] == ["timetable.txt"]


async def test_a_text_of_a_few_parts_is_sent_before_the_answer(everos: EverosMemory, ann: User) -> None:
    resource = await upload(ann, LONG[: 2 * PART_CHARS])
    assert resource["status"] == "indexed"
    ((body),) = everos.sent("add")
    assert len(body["messages"]) == 3


async def test_a_short_text_and_what_is_no_plain_text_go_whole(everos: EverosMemory, ann: User) -> None:
    page = b"<html><body>" + LONG + b"</body></html>"
    for content, name, ext in ((LONG[:PART_CHARS], "notes.txt", "txt"), (page, "page.html", "html")):
        await upload(ann, content, name)
        (message,) = everos.sent("add")[-1]["messages"]
        (item,) = message["content"]
        assert (item["ext"], item["base64"]) == (ext, base64.b64encode(content).decode())


@pytest.mark.parametrize("fault", ["refused", "no answer"])
async def test_after_a_fault_only_what_is_missing_is_sent(
    house: House, everos: EverosMemory, ann: User, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tries, "FIRST_PAUSE_SECONDS", 0.0)
    handle, adds = everos.handle_async_request, 0

    async def failing_once(request):  # type: ignore[no-untyped-def]
        nonlocal adds
        adds += request.url.path.endswith("/add")
        if adds == 3:
            everos.fail("add", fault)  # type: ignore[arg-type]
            adds += 1
        return await handle(request)

    everos.handle_async_request = failing_once  # type: ignore[method-assign]
    resource = await upload(ann, LONG)
    assert await indexed(house, ann, resource["id"]) == ("indexed", None)
    sent = [message["content"] for body in everos.sent("add") for message in body["messages"]]
    assert len(sent) - len(set(sent)) == PARTS_AT_ONCE  # those of the request that failed
    assert everos.remembered[0].count("[DOC: timetable.txt]") == len(set(sent))


async def test_a_lost_answer_to_the_flush_does_not_make_two_memories(
    house: House, everos: EverosMemory, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tries, "FIRST_PAUSE_SECONDS", 0.0)
    everos.fail("flush", "no answer")
    resource = await upload(ann, b"The ferry leaves at nine.")
    assert await indexed(house, ann, resource["id"]) == ("indexed", None)
    assert len(everos.remembered) == 1


async def test_a_failed_extraction_does_not_lose_the_file(
    house: House, everos: EverosMemory, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tries, "FIRST_PAUSE_SECONDS", 0.0)
    everos.fail("flush", "extraction failed")
    resource = await upload(ann, b"The ferry leaves at nine.")
    assert await indexed(house, ann, resource["id"]) == ("indexed", None)
    assert len(everos.remembered) == 1
