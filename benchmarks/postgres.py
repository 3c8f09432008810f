"""What does PostgreSQL cost beside SQLite, and does a user get slower when there are a hundred times as many others?

First the same server on each of the two, loaded in turns: searches of many users and creates of stated facts for many
users, over HTTP. Then one PostgreSQL with 100 users, and with 10,000 of the same size, through the ports.
``python -m benchmarks.postgres --scale 0.1`` does it with 1,000. ``make setup`` brings the server.
"""

import argparse
import asyncio
import importlib.util
import itertools
import json
import random
import statistics
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import httpx
from msgspec import Struct

from benchmarks.corpus import Corpus, vocabulary
from benchmarks.load import Plan, measure, request_bytes
from benchmarks.report import Skipped, print_ratio, print_table
from benchmarks.servers import Gateway, User, create_user, gateway, work_folder
from memory_gateway.engine.schemas import AddRequest, Caller, SearchRequest
from memory_gateway.memory_service.entries.schemas import NewEntry
from memory_gateway.memory_service.entries.service import Entries
from memory_gateway.server import open_facts, open_storage, open_upstream
from memory_gateway.settings import Settings
from memory_gateway.upstream.port import Upstream
from tests.fakes.databases import on_server
from tests.fakes.postgres import PACKAGE, running_server

CONNECTIONS = 16
READERS = 32
MESSAGES = 100
SECRET = "benchmark-key-secret"
FEW, MANY = 100, 10_000
SHARED_BUFFERS = "1GB"
MESSAGES_OF_MANY = 20
FACTS_OF_MANY = 5
SAMPLES = 300
MOST_A_SECOND = 4_000
WORDS = vocabulary()
FACTS = "/api/v1/memories"


class Rate(Struct, frozen=True):
    """Medians over the rounds."""

    per_second: float
    p50_ms: float
    p95_ms: float


class House(Struct, frozen=True):
    """A server that is loaded, and who searches there."""

    server: Gateway
    readers: list[User]


def main(seconds: float = 4.0, rounds: int = 3, scale: float = 1.0) -> None:
    """Print both parts."""
    if importlib.util.find_spec(PACKAGE) is None:
        raise Skipped(f"{PACKAGE} is not installed")
    beside_sqlite(seconds, rounds)
    with running_server(durable=True) as server, work_folder() as folder:
        # its default is of the days when that was a machine's memory
        asyncio.run(on_server(server.get_uri(), f"ALTER SYSTEM SET shared_buffers = '{SHARED_BUFFERS}'"))
        server.stop()
        server.start()
        asyncio.run(among_many(server.get_uri(), folder, max(FEW + 1, round(MANY * scale))))


def beside_sqlite(seconds: float, rounds: int) -> None:
    with running_server(durable=True) as server, work_folder() as one, work_folder() as other:
        address = {"database_url": server.get_uri(), "key_secret": SECRET}
        with gateway(one) as on_sqlite, gateway(other, **address) as on_postgres:
            houses = {"SQLite": _filled(on_sqlite), "PostgreSQL": _filled(on_postgres)}
            loads: dict[str, Callable[[House], Iterator[bytes]]] = {"search": _searches, "create": _creates}
            rates = {name: _rates(houses, made, seconds, rounds) for name, made in loads.items()}
    print_table(
        f"{CONNECTIONS} connections, {READERS} users, medians of {rounds} alternating rounds",
        ("call", *(f"{name} {what}" for name in houses for what in ("req/s", "p50 ms", "p95 ms"))),
        [(call, *(cell for rate in measured.values() for cell in _shown(rate))) for call, measured in rates.items()],
    )
    for call, measured in rates.items():
        ratio = measured["PostgreSQL"].per_second / measured["SQLite"].per_second
        print_ratio(f"{call}, PostgreSQL against SQLite", ratio, "at least 0.5")


def _filled(server: Gateway) -> House:
    readers = [create_user(server, f"reader-{number}") for number in range(READERS)]
    for number, reader in enumerate(readers):
        with httpx.Client(base_url=server.url, headers=reader.headers, timeout=60, trust_env=False) as client:
            for session_id, messages in Corpus(WORDS, number).sessions(reader.user_id, MESSAGES):
                wire = [
                    {"sender_id": one.sender_id, "role": one.role, "timestamp": one.timestamp, "content": one.content}
                    for one in messages
                ]
                body = {"session_id": f"{reader.user_id}:{session_id}", "messages": wire}
                client.post("/memories/add", json=body).raise_for_status()
    return House(server, readers)


def _searches(house: House) -> Iterator[bytes]:
    corpus = Corpus(WORDS, seed=1_000_000)
    for reader in itertools.cycle(house.readers):
        body = json.dumps({"query": corpus.query(), "method": "keyword", "top_k": 10}).encode()
        yield request_bytes("POST", "/memories/search", reader.headers, body)


def _creates(house: House) -> Iterator[bytes]:
    corpus, numbers = Corpus(WORDS, seed=random.randrange(10**9)), itertools.count()
    for reader in itertools.cycle(house.readers):
        content = f"{corpus.query(12)} {next(numbers)}"
        yield request_bytes("POST", FACTS, {}, json.dumps({"user_id": reader.user_id, "content": content}).encode())


def _rates(
    houses: Mapping[str, House], made: Callable[[House], Iterator[bytes]], seconds: float, rounds: int
) -> dict[str, Rate]:
    measured: dict[str, list[Any]] = {name: [] for name in houses}
    for _ in range(rounds):
        for name, house in houses.items():
            port = house.server.service_port if made is _creates else house.server.port
            requests = tuple(itertools.islice(made(house), round(MOST_A_SECOND * (seconds + 0.5))))
            plan = Plan(port, b"", CONNECTIONS, seconds, requests=requests)
            measured[name].append(measure(plan).require(201 if made is _creates else 200))
    return {name: _median(results) for name, results in measured.items()}


def _median(results: Sequence[Any]) -> Rate:
    names = ("per_second", "p50_ms", "p95_ms")
    return Rate(*(statistics.median(getattr(result, name) for result in results) for name in names))


def _shown(rate: Rate) -> tuple[str, str, str]:
    return f"{rate.per_second:,.0f}", f"{rate.p50_ms:.1f}", f"{rate.p95_ms:.1f}"


async def among_many(url: str, folder: Path, many: int) -> None:
    """The same hundred users, alone and among many."""
    rows, medians = [], {}
    made = 0
    for users in (FEW, many):
        async with _rooms(url, folder) as (upstream, entries):
            await _make(upstream, entries, made, users)
            made = users
            await _settle(url)
            times = {"search": await _search_times(upstream), "create": await _create_times(entries, users)}
            size = await _size(url)
        medians[users] = {call: statistics.median(taken) for call, taken in times.items()}
        rows += [
            (f"{users:,}", call, f"{medians[users][call]:.2f}", f"{statistics.quantiles(taken, n=20)[-1]:.2f}", size)
            for call, taken in times.items()
        ]
    print_table(
        f"One of the first {FEW} users, {MESSAGES_OF_MANY} messages and {FACTS_OF_MANY} facts each, one call at once; "
        f"shared_buffers {SHARED_BUFFERS}",
        ("users", "call", "p50 ms", "p95 ms", "MiB in all"),
        rows,
    )
    for call in ("search", "create"):
        print_ratio(f"{call}, {many:,} users against {FEW}", medians[many][call] / medians[FEW][call], "at most 1.2")


@asynccontextmanager
async def _rooms(url: str, folder: Path) -> AsyncIterator[tuple[Upstream, Entries]]:
    settings = Settings(data_dir=folder, database_url=url, key_secret=SECRET, embedder="none", database_connections=8)
    async with (
        open_storage(settings) as database,
        open_upstream(settings, database) as upstream,
        open_facts(settings, database, at_work=True) as facts,
    ):
        yield upstream, facts.entries


async def _make(upstream: Upstream, entries: Entries, first: int, end: int) -> None:
    numbers = iter(range(first, end))

    async def make_some() -> None:
        for number in numbers:
            user_id, corpus = f"user-{number}", Corpus(WORDS, number)
            for session_id, messages in corpus.sessions(user_id, MESSAGES_OF_MANY):
                await upstream.add(AddRequest(session_id, messages), Caller(user_id))
            for _ in range(FACTS_OF_MANY):
                await entries.create(NewEntry(user_id=user_id, content=corpus.query(12)))

    await asyncio.gather(*(make_some() for _ in range(8)))


async def _settle(url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute("VACUUM ANALYZE")
    await connection.execute("CHECKPOINT")
    await connection.close()


async def _size(url: str) -> str:
    connection = await asyncpg.connect(url)
    size = await connection.fetchval("SELECT pg_database_size(current_database())")
    await connection.close()
    return f"{size / (1 << 20):,.0f}"


async def _search_times(upstream: Upstream) -> list[float]:
    corpus, times = Corpus(WORDS, seed=1_000_000), []
    for number in range(SAMPLES):
        user_id = f"user-{number * 37 % FEW}"
        request = SearchRequest(corpus.query(), user_id=user_id, method="keyword", top_k=10)
        started = time.perf_counter()
        await upstream.search(request, Caller(user_id))
        times.append(1000 * (time.perf_counter() - started))
    return times[SAMPLES // 3 :]  # every user has been served once: both stores are asked warm


async def _create_times(entries: Entries, users: int) -> list[float]:
    corpus, times = Corpus(WORDS, seed=users), []
    for number in range(SAMPLES):
        new = NewEntry(user_id=f"user-{number * 37 % FEW}", content=corpus.query(12))
        started = time.perf_counter()
        await entries.create(new)
        times.append(1000 * (time.perf_counter() - started))
    return times[SAMPLES // 3 :]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the 10,000 users")
    return parser.parse_args()


if __name__ == "__main__":
    main(scale=_arguments().scale)
