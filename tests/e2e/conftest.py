"""A real server over real HTTP, as a child process on its own data folder."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from memory_gateway.demo.child import RunningServer, running_server

ADMIN_KEY = "the-admin-key-of-these-tests"
_clients = ExitStack()
_moments = itertools.count(1_780_000_000_000, 1000)


class Person:
    """A registered user who speaks to one server."""

    def __init__(self, server: RunningServer, user_id: str, user_key: str) -> None:
        self.user_id = user_id
        self.user_key = user_key
        self.at(server)

    def at(self, server: RunningServer) -> "Person":
        """From now on at this server."""
        self.http = _clients.enter_context(self._client(server))
        return self

    def _client(self, server: RunningServer) -> httpx.Client:
        return httpx.Client(
            base_url=server.url,
            headers={"X-User-ID": self.user_id, "X-User-Key": self.user_key},
            timeout=60,
            trust_env=False,
        )

    def add(self, *texts: str, conversation: str = "1", **options: Any) -> httpx.Response:
        messages = [
            {"sender_id": self.user_id, "role": "user", "timestamp": next(_moments), "content": text} for text in texts
        ]
        return self.http.post("/memories/add", json={"conversation_id": conversation, "messages": messages}, **options)

    def search(self, query: str, **options: Any) -> list[dict[str, Any]]:
        reply = self.http.post("/memories/search", json={"query": query, "method": "keyword", **options})
        assert reply.status_code == 200, reply.text
        results: list[dict[str, Any]] = reply.json()["results"]
        return results

    def upload(self, name: str, content: bytes, **fields: str) -> httpx.Response:
        return self.http.post("/resources", data=fields, files={"file": (name, content)})


def register(server: RunningServer, user_id: str) -> Person:
    reply = httpx.post(
        f"{server.url}/users", json={"user_id": user_id}, headers={"X-Admin-Key": server.admin_key}, trust_env=False
    )
    assert reply.status_code == 201, reply.text
    return Person(server, user_id, reply.json()["user_key"])


StartServer = Callable[..., RunningServer]


@pytest.fixture(autouse=True)
def _closed_clients() -> Iterator[None]:
    yield
    _clients.close()


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[StartServer]:
    """Starts servers on one data folder; they are stopped when the test ends."""
    with ExitStack() as stack:

        def start(**settings: str) -> RunningServer:
            return stack.enter_context(running_server(tmp_path, ADMIN_KEY, **{"embedder": "none", **settings}))

        yield start


@pytest.fixture
def server(start_server: StartServer) -> RunningServer:
    return start_server()
