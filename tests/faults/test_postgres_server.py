"""PostgreSQL dies, drops connections, or has too few of them, under load: what was acknowledged stays, and the
gateways go on by themselves."""

import asyncio
import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import asyncpg
import httpx
import psutil
import pytest

from memory_gateway.demo.child import RunningServer
from tests.fakes.databases import TEMPLATE, database_url, on_server
from tests.fakes.gateways import Caller, Clients, running_gateways
from tests.fakes.postgres import running_server

pytestmark = pytest.mark.slow

SLOWEST_SECONDS = 20  # a hang, not a slow machine
SERVICE_FAULT = (500, '{"error":"数据库错误"}')
BOOK = b"".join(b"Chapter %d tells of place%d and its people.\n" % (number, number) for number in range(1000))

USERS = ("ann", "anna", "a_b")
STORED_ADDS = "SELECT user_id, object_id, COUNT(*) FROM audit_log WHERE action = 'add' GROUP BY user_id, object_id"
MESSAGES = """
SELECT name.user_id, message.session_id, COUNT(*), COUNT(DISTINCT message.content)
FROM engine_messages AS message JOIN engine_space_names AS name ON name.space_no = message.space_no
WHERE message.session_id LIKE 'chat:%' GROUP BY name.user_id, message.session_id
"""
TURNS = """
SELECT space.space_no FROM engine_spaces AS space
WHERE space.turn_count <> (SELECT COUNT(*) FROM engine_turns AS turn WHERE turn.space_no = space.space_no)
"""
MISCOUNTED = """
SELECT owner.user_id FROM memory_users AS owner
WHERE (SELECT COUNT(*) FROM memory_entries AS entry WHERE entry.user_no = owner.user_no)
  <> (SELECT COALESCE(SUM(entries), 0) FROM memory_counts AS counted WHERE counted.user_no = owner.user_no)
"""
ACCESSES = "SELECT access_count FROM memory_entries WHERE id = $1"


@pytest.fixture
def server() -> Iterator[Any]:
    with running_server() as server:
        yield server


class Load:
    """Every connection adds, states facts, reads, searches and uploads until it is stopped; notes every reply."""

    def __init__(self, clients: Clients) -> None:
        self.clients = clients
        self.callers: list[Caller] = []
        self.fact_ids: dict[str, str] = {}
        self.added: list[tuple[Caller, str]] = []
        self.not_added: list[str] = []
        self.stated: list[tuple[Caller, str]] = []
        self.reads: Counter[str] = Counter()
        self.uploaded: list[tuple[Caller, str, bytes]] = []
        self.gateway_statuses: Counter[int] = Counter()
        self.service_replies: Counter[tuple[int, str]] = Counter()
        self.slowest = 0.0
        self._numbers = itertools.count()
        self._stopped = False

    async def prepare(self) -> None:
        for user_id in USERS:
            self.callers.append(await self.clients.register(user_id))
            reply = await self.clients.service().post(
                "/memories", json={"user_id": user_id, "content": "a fact to read"}
            )
            self.fact_ids[user_id] = reply.json()["memory"]["id"]

    @asynccontextmanager
    async def running(self, connections: int = 12) -> AsyncIterator[None]:
        self._stopped = False
        tasks = [asyncio.create_task(self._work(self.callers[place % len(USERS)])) for place in range(connections)]
        try:
            yield
        finally:
            self._stopped = True
            await asyncio.gather(*tasks)

    async def until_acknowledged(self, more: int) -> None:
        """Until so many more adds were acknowledged."""
        wanted, deadline = len(self.added) + more, time.monotonic() + 60
        while len(self.added) < wanted:
            assert time.monotonic() < deadline, f"{len(self.added)} of {wanted} adds after a minute: {self}"
            await asyncio.sleep(0.05)

    def __repr__(self) -> str:
        return (
            f"gateway {dict(self.gateway_statuses)}, service {dict(self.service_replies)}, slowest {self.slowest:.1f}"
        )

    async def _work(self, caller: Caller) -> None:
        while not self._stopped:
            number = next(self._numbers)
            started = time.monotonic()
            await (self._add, self._state, self._read, self._search, self._upload)[number % 5](caller, number)
            self.slowest = max(self.slowest, time.monotonic() - started)
            await asyncio.sleep(0.01)

    async def _add(self, caller: Caller, number: int) -> None:
        message = caller.message(f"falcon n{number}z", 1_780_000_000_000 + 1000 * number)
        reply = await caller.add(self.clients.gateway(), f"{caller.user_id}-{number % 4}", [message])
        if self._note(reply):
            self.added.append((caller, f"n{number}z"))
        else:
            self.not_added.append(f"n{number}z")

    async def _state(self, caller: Caller, number: int) -> None:
        content = f"{number * 7919 % 1_000_003:x} is what {caller.user_id} states as number {number} of all"
        body = {"user_id": caller.user_id, "content": content}
        if self._note_service(await self.clients.service().post("/memories", json=body)):
            self.stated.append((caller, content))

    async def _read(self, caller: Caller, number: int) -> None:
        if self._note_service(await self.clients.service().get(f"/memories/{self.fact_ids[caller.user_id]}")):
            self.reads[caller.user_id] += 1

    async def _search(self, caller: Caller, number: int) -> None:
        body = {"query": f"falcon n{number % 50}z", "method": "keyword"}
        self._note(await self.clients.gateway().post("/memories/search", json=body, headers=caller.headers))

    async def _upload(self, caller: Caller, number: int) -> None:
        content = f"file number {number}".encode()
        reply = await caller.upload(self.clients.gateway(), f"{number}.txt", content)
        if self._note(reply):
            self.uploaded.append((caller, reply.json()["resource"]["id"], content))

    def _note(self, reply: httpx.Response) -> bool:
        self.gateway_statuses[reply.status_code] += 1
        return reply.is_success

    def _note_service(self, reply: httpx.Response) -> bool:
        self.service_replies[reply.status_code, "" if reply.is_success else reply.text] += 1
        return reply.is_success

    def check_replies(self) -> None:
        """Served, or told in time that the database is away."""
        assert set(self.gateway_statuses) <= {200, 201, 503}, self
        assert {reply for reply in self.service_replies if reply[0] >= 400} <= {SERVICE_FAULT}, self
        assert self.slowest < SLOWEST_SECONDS, self

    async def check_nothing_is_lost(self) -> None:
        at = self.clients.gateway()
        for caller in self.callers:
            shown = [result["text"] for result in await caller.search(at, "falcon")]
            words = Counter(line.split()[-1] for text in shown for line in text.splitlines())
            acknowledged = {word for owner, word in self.added if owner is caller}
            assert acknowledged <= set(words), f"{caller.user_id} lost {acknowledged - set(words)}"
            assert set(words.values()) == {1}, f"{caller.user_id} has a message twice: {words.most_common(3)}"
        for caller, resource_id, content in self.uploaded:
            reply = await at.get(f"/resources/{resource_id}/content", headers=caller.headers)
            assert reply.content == content
        await self._check_facts()

    async def _check_facts(self) -> None:
        held: dict[str, str] = {}
        for user_id in USERS:
            reply = await self.clients.service().get("/memories", params={"user_id": user_id, "limit": 1000})
            held[user_id] = "\n".join(memory["content"] for memory in reply.json()["memories"])
        for caller, content in self.stated:
            assert content in held[caller.user_id]

    async def check_nothing_is_half_done(self, url: str) -> None:
        """Of every add its words, its session's owner and its record; of every fact its count."""
        connection = await asyncpg.connect(url)
        try:
            recorded = {(user_id, session): count for user_id, session, count in await connection.fetch(STORED_ADDS)}
            messages = {
                (user_id, session): tuple(counts) for user_id, session, *counts in await connection.fetch(MESSAGES)
            }
            assert messages == {place: (count, count) for place, count in recorded.items()}
            assert await connection.fetch(TURNS) == []
            assert await connection.fetch(MISCOUNTED) == []
        finally:
            await connection.close()

    async def check_accesses(self, url: str) -> None:
        """After a clean stop."""
        counts = {user_id: await on_server_with(url, ACCESSES, self.fact_ids[user_id]) for user_id in USERS}
        assert counts == dict(self.reads)


async def on_server_with(url: str, statement: str, *params: object) -> Any:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(statement, *params)
    finally:
        await connection.close()


class _Embedder(BaseHTTPRequestHandler):
    """A model of two dimensions."""

    protocol_version = "HTTP/1.1"
    asked: ClassVar[Counter[str]] = Counter()

    def do_POST(self) -> None:
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        items = [{"index": index, "embedding": [1.0 + len(text) % 7, 1.0]} for index, text in enumerate(texts)]
        reply = json.dumps({"data": items}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Nobody reads it."""


@contextmanager
def embedding_server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Embedder) as http:
        http.daemon_threads = True
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{http.server_address[1]}/v1"
        finally:
            http.shutdown()
            thread.join()


def kill(server: Any) -> None:
    """`kill -9` of the server and all its processes."""
    postmaster = psutil.Process(server.get_pid())
    family = [postmaster, *postmaster.children(recursive=True)]
    for process in family:
        process.kill()
    psutil.wait_procs(family, timeout=30)


async def health(clients: Clients) -> list[dict[str, Any]]:
    replies = [await at.get("/health") for at in (*clients.gateways, *clients.services)]
    assert {reply.status_code for reply in replies} == {200}
    return [reply.json() for reply in replies]


def statuses(found: list[dict[str, Any]]) -> set[str]:
    return {one["status"] for one in found}


async def wait_for_health(clients: Clients, wanted: str) -> None:
    deadline = time.monotonic() + 60
    while statuses(found := await health(clients)) != {wanted}:
        assert time.monotonic() < deadline, f"not all are {wanted} after a minute: {found}"
        await asyncio.sleep(0.2)


async def wait_for_background(clients: Clients, caller: Caller, resource_id: str) -> None:
    """The large file is indexed and everything has its vector."""
    deadline = time.monotonic() + 120
    while True:
        reply = await clients.gateway().get(f"/resources/{resource_id}", headers=caller.headers)
        assert reply.status_code == 200, f"the book is lost: {reply.text}"
        resource = reply.json()
        upstream = (await clients.gateway().get("/health")).json()["upstream"]
        if resource["status"] == "indexed" and upstream["backlog"] == 0:
            return
        assert time.monotonic() < deadline, f"{resource}, {upstream} after two minutes"
        await asyncio.sleep(0.3)


def test_a_killed_server_that_comes_back_under_load_costs_nothing_that_was_acknowledged(
    server: Any, tmp_path: Path
) -> None:
    url = database_url(server.get_uri(), TEMPLATE)

    async def story(gateways: list[RunningServer]) -> Load:
        async with Clients(gateways, 1) as clients:
            load = Load(clients)
            await load.prepare()
            async with load.running():
                await load.until_acknowledged(30)
                book = (await load.callers[0].upload(clients.gateway(), "book.txt", BOOK)).json()["resource"]
                assert book["status"] == "stored"
                await asyncio.to_thread(kill, server)
                await wait_for_health(clients, "degraded")
                await asyncio.sleep(3)
                refused = load.gateway_statuses[503]
                assert refused > 0
                await asyncio.to_thread(server.start)
                await wait_for_health(clients, "ok")
                await load.until_acknowledged(30)
            load.check_replies()
            await wait_for_background(clients, load.callers[0], book["id"])
            assert (await clients.gateway().get("/health")).json()["capabilities"]["vector"] is True
            await load.check_nothing_is_lost()
            await load.check_nothing_is_half_done(url)
            return load

    with embedding_server() as embedder_url:
        settings = {"embedder": "openai", "embedder_url": embedder_url, "embedder_model": "two"}
        settings |= {"rate_limit": "1000", "inline_index_bytes": "20000"}
        with running_gateways(tmp_path, url, count=2, **settings) as gateways:
            load = asyncio.run(story(gateways))
            pids = {gateway.pid for gateway in gateways}
            assert all(psutil.pid_exists(pid) for pid in pids)
            logs = [gateway.log for gateway in gateways]
    asyncio.run(load.check_accesses(url))
    assert "it goes on" not in "".join(path.read_text("utf-8") for path in logs), "a fault that nobody foresaw"


def test_connections_that_are_dropped_at_random_cost_a_503_and_leave_nothing_half_done(
    server: Any, tmp_path: Path
) -> None:
    url = database_url(server.get_uri(), TEMPLATE)
    drop = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE application_name = 'memory-gateway' AND (state <> 'idle' OR random() < 0.1) ORDER BY random() LIMIT 1
    """

    async def story(gateways: list[RunningServer]) -> Load:
        async with Clients(gateways, 2) as clients:
            load = Load(clients)
            await load.prepare()
            async with load.running():
                connection = await asyncpg.connect(server.get_uri())
                ends = time.monotonic() + 10
                while time.monotonic() < ends:
                    await connection.execute(drop)
                    await asyncio.sleep(0.04)
                await connection.close()
                await load.until_acknowledged(5)
            load.check_replies()
            assert load.gateway_statuses[200] > load.gateway_statuses[503] > 0, load
            await load.check_nothing_is_lost()
            await load.check_nothing_is_half_done(url)
            return load

    with running_gateways(tmp_path, url, count=2) as gateways:
        load = asyncio.run(story(gateways))
    asyncio.run(load.check_accesses(url))


def test_a_server_with_too_few_connections_serves_whom_it_can(server: Any, tmp_path: Path) -> None:
    asyncio.run(
        on_server(server.get_uri(), "CREATE ROLE keeper LOGIN CONNECTION LIMIT 3", "CREATE DATABASE few OWNER keeper")
    )
    url = database_url(server.get_uri(), "few").replace("postgres:@", "keeper@")

    async def story(gateways: list[RunningServer]) -> None:
        async with Clients(gateways, 3) as clients:
            load = Load(clients)
            await load.prepare()
            async with load.running(24):
                await load.until_acknowledged(20)
            load.check_replies()
            assert statuses(await health(clients)) == {"ok"}
            await load.check_nothing_is_lost()
            await load.check_nothing_is_half_done(database_url(server.get_uri(), "few"))

    with running_gateways(tmp_path, url, count=1) as gateways:
        asyncio.run(story(gateways))
