"""Several `memory-gateway serve` processes on one PostgreSQL and one folder of files, as behind a load balancer."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import httpx

from memory_gateway.demo.child import RunningServer, running_server

ADMIN_KEY = "the-admin-key-of-these-tests"
KEY_SECRET = "the-key-secret-of-these-tests"

Json = dict[str, Any]


@contextmanager
def running_gateways(folder: Path, database_url: str, count: int = 3, **settings: str) -> Iterator[list[RunningServer]]:
    """They share what they must share and nothing else; each has a log of its own."""
    shared = {
        "data_dir": str(folder / "data"),
        "database_url": database_url,
        "key_secret": KEY_SECRET,
        "embedder": "none",
        **settings,
    }
    homes = [folder / f"gateway-{number}" for number in range(count)]
    for home in homes:
        home.mkdir()
    with ExitStack() as stack, ThreadPoolExecutor() as starting:
        stacks = [stack.enter_context(ExitStack()) for _ in homes]
        yield list(
            starting.map(lambda one, home: one.enter_context(running_server(home, ADMIN_KEY, **shared)), stacks, homes)
        )


class Clients:
    """Speaks to one of the processes at random, or to the one that is named by its number."""

    def __init__(self, servers: list[RunningServer], seed: int, connections: int = 32) -> None:
        self.random = Random(seed)
        # given up sooner than the server gives it up, which would look like a fault
        self._limits = httpx.Limits(max_connections=connections, keepalive_expiry=2)
        self.gateways = [self._client(server.url) for server in servers]
        self.services = [self._client(f"{server.service_url}/api/v1") for server in servers]

    async def __aenter__(self) -> "Clients":
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in (*self.gateways, *self.services):
            await client.aclose()

    def gateway(self) -> httpx.AsyncClient:
        return self.random.choice(self.gateways)

    def service(self) -> httpx.AsyncClient:
        return self.random.choice(self.services)

    async def register(self, user_id: str) -> "Caller":
        reply = await self.gateway().post("/users", json={"user_id": user_id}, headers={"X-Admin-Key": ADMIN_KEY})
        assert reply.status_code == 201, reply.text
        return Caller(user_id, reply.json()["user_key"])

    def _client(self, url: str) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=url, timeout=60, trust_env=False, limits=self._limits)


class Caller:
    """A registered user."""

    def __init__(self, user_id: str, user_key: str) -> None:
        self.user_id = user_id
        self.headers = {"X-User-ID": user_id, "X-User-Key": user_key}

    def message(self, text: str, timestamp: int) -> Json:
        return {"sender_id": self.user_id, "role": "user", "timestamp": timestamp, "content": text}

    async def add(
        self, at: httpx.AsyncClient, session: str, messages: list[Json], key: str | None = None
    ) -> httpx.Response:
        headers = self.headers if key is None else {**self.headers, "Idempotency-Key": key}
        body = {"conversation_id": session, "messages": messages}
        return await at.post("/memories/add", json=body, headers=headers)

    async def search(self, at: httpx.AsyncClient, query: str, **options: Any) -> list[Json]:
        body = {"query": query, "method": "keyword", "top_k": 100, "include_profile": False, **options}
        reply = await at.post("/memories/search", json=body, headers=self.headers)
        assert reply.status_code == 200, f"{self.user_id} searches {query!r}: {reply.status_code} {reply.text}"
        results: list[Json] = reply.json()["results"]
        return results

    async def upload(self, at: httpx.AsyncClient, name: str, content: bytes) -> httpx.Response:
        return await at.post("/resources", files={"file": (name, content)}, headers=self.headers)
