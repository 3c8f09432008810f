"""A document with a long text on its way to EverOS, which never splits a message: its model would get it whole."""

import asyncio
import base64
from pathlib import Path

import pytest

from memory_gateway.documents.extract import Extractor
from memory_gateway.gateway.resources import tries
from memory_gateway.gateway.resources.parts import PART_CHARS, PARTS_AT_ONCE
from tests.fakes.documents import docx, mail, pdf
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


def parts_sent(everos: EverosMemory, label: str) -> list[str]:
    """The texts of all messages, each under its label, a millisecond apart."""
    messages = [message for body in everos.sent("add") for message in body["messages"]]
    assert [message["timestamp"] for message in messages] == list(range(START, START + len(messages)))
    assert all(message["content"].startswith(f"{label}\n") for message in messages)
    parts = [message["content"].removeprefix(f"{label}\n") for message in messages]
    assert max(map(len, parts)) <= PART_CHARS
    return parts


def whole(everos: EverosMemory) -> tuple[str, bytes]:
    """The file that the last message consists of: its extension and its bytes."""
    (message,) = everos.sent("add")[-1]["messages"]
    (item,) = message["content"]
    return item["ext"], base64.b64decode(item["base64"])


async def test_a_long_text_goes_in_several_messages_in_its_order(house: House, everos: EverosMemory, ann: User) -> None:
    resource = await upload(ann, LONG)
    assert resource["status"] == "stored"  # its requests may take longer than a client waits
    assert await indexed(house, ann, resource["id"]) == ("indexed", None)
    bodies = everos.sent("add")
    assert {body["session_id"] for body in bodies} == {resource["session_id"]}
    assert max(len(body["messages"]) for body in bodies) == PARTS_AT_ONCE
    assert "\n".join(parts_sent(everos, "[DOC: timetable.txt]")).splitlines() == LINES
    assert len(everos.sent("flush")) == 1
    assert len(everos.remembered) == 1


PAGE = b"<html><body>" + b"".join(b"<p>" + line.encode() + b"</p>" for line in LINES) + b"</body></html>"


@pytest.mark.parametrize(
    ("name", "label", "content"),
    [
        ("minutes.docx", "[DOC: minutes.docx]", docx(LINES)),
        ("report.pdf", "[PDF: report.pdf]", pdf(LINES)),
        ("page.html", "[HTML: page.html]", PAGE),
        ("mail.eml", "[EMAIL: mail.eml]", mail("Ferries", "\n".join(LINES), {})),
    ],
    ids=["office", "pdf", "web page", "mail"],
)
async def test_so_does_the_long_text_of_a_document(
    house: House, everos: EverosMemory, ann: User, name: str, label: str, content: bytes
) -> None:
    resource = await upload(ann, content, name)
    assert resource["status"] == "stored"
    assert await indexed(house, ann, resource["id"]) == ("indexed", None)
    text = "".join("".join(parts_sent(everos, label)).split())
    assert [line for line in LINES if line.replace(" ", "") not in text] == []
    (found,) = await ann.search("ferry", scope="resources")
    assert [one["name"] for one in found["attachments"]] == [name]
    stored = await house.client.get(f"/resources/{resource['id']}/content", headers=ann.headers)
    assert stored.content == content


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


async def test_a_packed_document_has_more_text_than_bytes(house: House, everos: EverosMemory, ann: User) -> None:
    content = docx(LINES[:700])
    assert len(content) < PART_CHARS
    resource = await upload(ann, content, "minutes.docx")
    assert await indexed(house, ann, resource["id"]) == ("indexed", None)
    assert len(parts_sent(everos, "[DOC: minutes.docx]")) == 4


async def test_a_document_of_a_few_parts_is_sent_before_the_answer(everos: EverosMemory, ann: User) -> None:
    resource = await upload(ann, pdf(LINES[:200]), "report.pdf")
    assert resource["status"] == "indexed"
    assert len(parts_sent(everos, "[PDF: report.pdf]")) == 2


PADDING = b"\n%" + b"x" * PART_CHARS


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("notes.txt", LONG[:PART_CHARS]),
        ("minutes.docx", docx(LINES[:100])),
        ("report.pdf", pdf(LINES[:10]) + PADDING),
        ("scan.pdf", pdf([]) + PADDING),
        ("torn.docx", docx(LINES)[:-2_000]),
        ("noise.txt", bytes(range(256)) * 100),
    ],
    ids=[
        "a short text",
        "a small document",
        "one with a short text",
        "one without",
        "a damaged one",
        "what is no text",
    ],
)
async def test_others_go_whole(house: House, everos: EverosMemory, ann: User, name: str, content: bytes) -> None:
    resource = await upload(ann, content, name)
    assert resource["status"] == "indexed"
    assert whole(everos) == (name.partition(".")[2], content)
    assert len(everos.sent("add")) == 1


async def test_what_cannot_be_read_in_time_goes_whole(
    everos: EverosMemory, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    extract = Extractor.extract

    async def hurried(self: Extractor, path: Path, *, name: str, mime_type: str, timeout: float) -> object:
        return await extract(self, path, name=name, mime_type=mime_type, timeout=0.0)

    monkeypatch.setattr(Extractor, "extract", hurried)
    content = pdf(LINES)
    assert (await upload(ann, content, "report.pdf"))["status"] == "indexed"
    assert whole(everos) == ("pdf", content)


async def test_of_a_text_without_end_the_first_two_million_characters_are_sent(
    house: House, everos: EverosMemory, ann: User
) -> None:
    resource = await upload(ann, b"x" * 2_000_001)
    assert await indexed(house, ann, resource["id"]) == (
        "indexed",
        "only the first 2000000 characters were indexed",
    )
    assert sum(map(len, parts_sent(everos, "[DOC: timetable.txt]"))) == 2_000_000


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
