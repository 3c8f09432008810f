"""Documents whose text is too long for one message: EverOS never splits one."""

import time

import pytest

from tests.e2e.conftest import Person
from tests.everos_live.conftest import Newcomer
from tests.everos_live.people import Settle, search
from tests.fakes.documents import docx, pdf

pytestmark = pytest.mark.live

LINES = [f"Line {number} says that the ferry leaves at {number % 24}." for number in range(700)]
LINES += ["The last line says that the lighthouse keeper is called Marguerite."]
AT_MOST_SECONDS = 120


def status(person: Person, resource_id: str) -> str:
    """As soon as it is known."""
    deadline = time.monotonic() + AT_MOST_SECONDS
    while (found := person.http.get(f"/resources/{resource_id}").json())["status"] == "stored":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return str(found["status"])


@pytest.mark.parametrize(
    ("name", "content"),
    [("timetable.txt", "\n".join(LINES).encode()), ("timetable.docx", docx(LINES)), ("timetable.pdf", pdf(LINES))],
    ids=["text", "office", "pdf"],
)
def test_a_long_text_is_extracted_in_parts_and_all_of_it_is_found(
    newcomer: Newcomer, settle: Settle, name: str, content: bytes
) -> None:
    vic = newcomer(name)
    resource = vic.upload(name, content).json()["resource"]
    assert status(vic, resource["id"]) == "indexed"
    settle()
    found = search(vic, "What is the lighthouse keeper called?", scope="resources", top_k=50)
    assert len(found) > 1  # EverOS closes a cell before it gets too long
    assert {one["resource_id"] for one in found} == {resource["id"]}
    text = " ".join(one["text"] for one in found)
    assert [line for line in (LINES[0], LINES[-1]) if line not in text] == []
    assert {attachment["name"] for one in found for attachment in one["attachments"]} == {name}
