"""What a person does in these tests, and what is found of it."""

from collections.abc import Callable
from typing import Any

import httpx

from memory_gateway.kit.clock import system_clock
from tests.e2e.conftest import Person

Results = list[dict[str, Any]]
Settle = Callable[[], None]


def search(person: Person, query: str, **options: Any) -> Results:
    return person.search(query, **{"method": "vector", "include_profile": False, **options})


def chat(person: Person, name: str = "talk") -> str:
    """A conversation of this person's: the first to write one owns it, and the gateway is shared."""
    return f"{name}-{person.user_id}"


def flush(person: Person, name: str = "talk") -> None:
    reply = person.http.post("/memories/flush", json={"conversation_id": chat(person, name)})
    assert (reply.status_code, reply.json()["data"]) == (200, {"status": "extracted"})


def tell(person: Person, text: str, name: str = "talk") -> None:
    """A conversation, from its first word to its extraction."""
    assert person.add(text, conversation=chat(person, name)).status_code == 200
    flush(person, name)


def said(person: Person, content: str | list[dict[str, Any]], at: int | None = None) -> dict[str, Any]:
    """The body of an add of one message; sent again it is the same message again."""
    timestamp = system_clock() if at is None else at
    message = {"sender_id": person.user_id, "role": "user", "timestamp": timestamp, "content": content}
    return {"conversation_id": chat(person), "messages": [message]}


def send(person: Person, content: list[dict[str, Any]]) -> httpx.Response:
    return person.http.post("/memories/add", json=said(person, content))


def chats(found: Results) -> list[str]:
    """The names of the conversations that these memories come from."""
    return [one["session_id"].removeprefix("chat:").partition("-")[0] for one in found]
