"""Files, on their way to a real EverOS and back: by their place on the disk that both see, or as base64."""

import base64
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.everos_live.conftest import Newcomer
from tests.everos_live.people import Settle, chat, chats, flush, search, send, tell
from tests.everos_live.replies import SEEN_IN_FILE

pytestmark = [
    pytest.mark.live,
    pytest.mark.parametrize("gateway", [True, False], indirect=True, ids=["on one disk", "apart"]),
]

NOTES = b"The tern feeder on the north pier needs new rope."
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def path_of(uri: str) -> Path:
    return Path(unquote(urlsplit(uri).path))


def test_an_uploaded_file_is_read_and_found_with_its_place_on_the_disk(newcomer: Newcomer, settle: Settle) -> None:
    ann, anna = newcomer("ann"), newcomer("anna")
    reply = ann.upload("north pier.txt", NOTES)
    resource = reply.json()["resource"]
    assert (reply.status_code, resource["status"], reply.json()["created"]) == (201, "indexed", True)
    settle()
    (found,) = search(ann, "rope for the tern feeder", scope="resources")
    assert "needs new rope" in found["text"]
    assert (found["memory_type"], found["source_scope"], found["overridden"]) == ("episode", "resources", False)
    assert (found["resource_id"], found["resource_uri"]) == (resource["id"], f"resource://{resource['id']}")
    assert found["session_id"] == f"resource:{ann.user_id}:{resource['id']}"
    (attachment,) = found["attachments"]
    assert (attachment["type"], attachment["name"]) == ("doc", "north pier.txt")
    assert path_of(attachment["internal_uri"]).read_bytes() == NOTES
    assert search(anna, "rope for the tern feeder", scope=["resources", "all_user_memory"]) == []
    assert anna.http.get(f"/resources/{resource['id']}").status_code == 404


def test_the_same_bytes_again_are_the_same_resource(newcomer: Newcomer, settle: Settle) -> None:
    bea = newcomer("bea")
    first, again = (bea.upload(name, NOTES) for name in ("one.txt", "two.txt"))
    assert (again.status_code, again.json()["created"]) == (200, False)
    assert again.json()["resource"]["id"] == first.json()["resource"]["id"]
    settle()
    assert len(search(bea, "tern feeder", scope="resources")) == 1


def test_a_deleted_resource_is_in_no_scope_until_it_is_restored(newcomer: Newcomer, settle: Settle) -> None:
    cy = newcomer("cy")
    resource_id = cy.upload("pier.txt", NOTES).json()["resource"]["id"]
    settle()
    assert cy.http.delete(f"/resources/{resource_id}").status_code == 200
    for scope in ("resources", "all_user_memory"):
        assert search(cy, "tern feeder", scope=scope) == []
    assert cy.http.post(f"/resources/{resource_id}/restore").status_code == 200
    (found,) = search(cy, "tern feeder", scope="resources")
    assert [attachment["name"] for attachment in found["attachments"]] == ["pier.txt"]


def test_a_picture_in_a_chat_is_kept_and_found_by_its_name(newcomer: Newcomer, settle: Settle) -> None:
    dee = newcomer("dee")
    code = base64.b64encode(PNG).decode()
    picture = {"type": "image", "base64": code, "ext": "png", "name": "Falcon Board.png"}
    assert send(dee, [{"type": "text", "text": "This is our board."}, picture]).status_code == 200
    (waiting,) = search(dee, "board", scope="current_chat", conversation_id=chat(dee))
    assert waiting["memory_type"] == "unprocessed_message"
    assert code not in waiting["text"]
    assert [part.get("base64") for part in waiting["raw"]["content"]] == [None, code]
    assert [attachment["name"] for attachment in waiting["attachments"]] == ["Falcon Board.png"]
    flush(dee)
    settle()
    (found,) = search(dee, "falcon deployment sketch")
    assert SEEN_IN_FILE in found["text"]
    (attachment,) = found["attachments"]
    assert (attachment["type"], attachment["name"]) == ("image", "Falcon Board.png")
    assert path_of(attachment["internal_uri"]).read_bytes() == PNG


def test_a_file_that_the_memory_does_not_name_is_not_attached(newcomer: Newcomer, settle: Settle) -> None:
    eli = newcomer("eli")
    code = base64.b64encode(NOTES).decode()
    assert send(eli, [{"type": "doc", "base64": code, "ext": "txt", "name": "rope.txt"}]).status_code == 200
    flush(eli)
    tell(eli, "We lack a rope.txt, said the captain.", "other")
    settle()
    found = search(eli, "the rope", top_k=5)
    attached = {
        name: [one["name"] for one in memory["attachments"]] for name, memory in zip(chats(found), found, strict=True)
    }
    assert attached == {"talk": ["rope.txt"], "other": []}
