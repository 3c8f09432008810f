"""The words of an erased user are gone from the disk, not only from what the server answers."""

from pathlib import Path

import httpx

from memory_gateway.demo.child import running_server
from tests.e2e.conftest import ADMIN_KEY, Person, register

KEPT, GONE = "zephyrine", "quondamite"


def holders(folder: Path, word: str) -> list[str]:
    """The files that hold the word, in any of the ways in which the server may write it."""
    codes = [word.encode(), word.upper().encode(), word.encode("utf-16-le")]
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in files if any(code in path.read_bytes() for code in codes)]


def live(person: Person, word: str) -> None:
    """Leave the word wherever a user's words may go: in short and long texts, files, edits, names and replies."""
    for number in range(30):
        person.add(
            f"{word}{number} is a word, " + "as long as others are. " * number, conversation=f"{word}-{number % 3}"
        )
    person.add(f"A chapter on {word}. " * 2000, conversation=word)
    person.upload(f"{word}.txt", f"The {word} of the file.".encode(), title=word)
    person.add(f"{word} once more", headers={"Idempotency-Key": word})
    first, second = person.search(word)[:2]
    reply = person.http.put(f"/memories/{first['id']}", json={"text": f"{word} corrected", "reason": word})
    assert reply.status_code == 200, reply.text
    assert person.http.delete(f"/memories/{second['id']}").status_code == 200


def test_the_words_of_an_erased_user_are_in_no_file_while_the_server_runs_and_after(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running_server(tmp_path, ADMIN_KEY, embedder="none") as server:
        ann, anna = register(server, "ann"), register(server, "anna")
        for _ in range(2):  # so that their rows lie between each other's
            live(ann, GONE)
            live(anna, KEPT)
        assert holders(data, GONE)
        headers = {"X-Admin-Key": ADMIN_KEY}
        reply = httpx.delete(f"{server.url}/users/ann", headers=headers, timeout=60, trust_env=False)
        assert reply.status_code == 200, reply.text
        assert holders(data, GONE) == []
        assert anna.search(KEPT)
    assert holders(data, GONE) == []
    assert holders(data, KEPT)
