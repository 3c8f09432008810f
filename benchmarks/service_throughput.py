"""How much quicker is the Memory-Service than its twin on FastAPI, Pydantic and SQLAlchemy: list of 50, get, create?

The twin's create only inserts a row and its index entries, as durably; the service's looks for something similar
first. The twin's get counts no access; the service's does. Both are loaded in turns, each alone while it is measured,
and the medians are compared.
"""

import asyncio
import json
import statistics
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
from msgspec import Struct

from benchmarks.corpus import Corpus, vocabulary
from benchmarks.load import Plan, Result, measure, request_bytes
from benchmarks.report import print_ratio, print_table
from benchmarks.servers import asgi, gateway, work_folder
from memory_gateway.storage.port import Transaction
from memory_gateway.storage.sqlite import SqliteDatabase

CONNECTIONS = 16
ENTRIES = 1000
PATH = "/api/v1/memories"
LIST = f"{PATH}?user_id=reader"
CATEGORIES = ("knowledge", "event", "user_preference", "conversation")
MOST_CREATES_A_SECOND = 8000

INSERT = """
INSERT INTO memory_entries (id, user_id, content, summary, category, priority, importance, keywords, session_id, source,
  access_count, last_access, created_at, updated_at)
VALUES (:id, :user_id, :content, :summary, :category, :priority, :importance, :keywords, :session_id, :source,
  :access_count, :last_access, :created_at, :updated_at)
"""

Json = dict[str, Any]


class Rate(Struct, frozen=True):
    """Medians over the rounds."""

    per_second: float
    p50_ms: float


def main(seconds: float = 3.0, rounds: int = 5) -> None:
    """Print requests a second of both and the ratios."""
    texts = sentences()
    with work_folder() as folder, gateway(folder) as server:
        port = server.service_port
        entries = fill(port, texts)
        twin_database = folder / "twin.db"
        with asgi("benchmarks.twin_service.app:app", "/docs", TWIN_DATABASE=str(twin_database)) as twin:
            asyncio.run(copy(entries, twin_database))
            require_equal_answers(port, twin, entries)
            ports = {"service": port, "twin": twin}
            one = f"{PATH}/{entries[0]['id']}"
            listed = _compared({name: _plan(port, LIST, seconds) for name, port in ports.items()}, rounds)
            got = _compared({name: _plan(port, one, seconds) for name, port in ports.items()}, rounds)
            created = _created(ports, texts, seconds, rounds)
    rows = [("list of 50", listed), ("get", got), ("create", created)]
    print_table(
        f"Memory-Service and its twin, {CONNECTIONS} connections, medians of {rounds} alternating rounds",
        ("call", "service req/s", "p50 ms", "twin req/s", "p50 ms"),
        [(name, *(cell for rate in rates.values() for cell in _shown(rate))) for name, rates in rows],
    )
    for (name, rates), goal in zip(rows, ("at least 5", "at least 5", "at least 3"), strict=True):
        print_ratio(f"{name}, service against twin", rates["service"].per_second / rates["twin"].per_second, goal)


def sentences() -> Iterator[str]:
    """Texts of which no two are similar."""
    words = vocabulary()
    for seed in range(1_000):
        for _, messages in Corpus(words, seed).sessions("writer", 10_000):
            yield from (str(message.content) for message in messages)


def fill(port: int, texts: Iterator[str]) -> list[Json]:
    """Create the reader's entries and a stranger's; the reader's as the list gives them."""
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        for number, text in enumerate(islice(texts, 2 * ENTRIES)):
            body = _new("reader" if number % 2 else "reader-2", text)
            body |= {"importance": 1 + number % 10, "category": CATEGORIES[number % 4], "keywords": text.split()[:3]}
            client.post(PATH, json=body).raise_for_status()
        entries: list[Json] = client.get(f"{LIST}&limit=1000").raise_for_status().json()["memories"]
    return entries


def _new(user_id: str, text: str) -> Json:
    return {"user_id": user_id, "content": text, "session_id": "chat:1", "source": "conversation"}


async def copy(entries: list[Json], twin_database: Path) -> None:
    """The reader's entries, and as many of a stranger's, into the twin's database."""
    database = SqliteDatabase(twin_database)
    rows = [{**entry, "keywords": json.dumps(entry["keywords"])} for entry in entries]
    strange = [{**row, "id": f"{row['id']}-2", "user_id": "reader-2"} for row in rows]

    async def work(transaction: Transaction) -> None:
        await transaction.execute_many(INSERT, [*rows, *strange])

    await database.write(work)
    await database.close()


def require_equal_answers(port: int, twin: int, entries: list[Json]) -> None:
    for path in (LIST, f"{LIST}&category=event&min_importance=4&limit=20&offset=3", f"{PATH}/{entries[0]['id']}"):
        answers = [
            httpx.get(f"http://127.0.0.1:{each}{path}", trust_env=False).raise_for_status().json()
            for each in (twin, port)
        ]
        if answers[0] != answers[1] or len(entries) != ENTRIES:
            raise AssertionError(f"the twin does not answer as the service does: {answers}")


def _plan(port: int, path: str, seconds: float) -> Plan:
    return Plan(port, request_bytes("GET", path, {}), CONNECTIONS, seconds)


def _created(ports: dict[str, int], texts: Iterator[str], seconds: float, rounds: int) -> dict[str, Rate]:
    """Every round brings new texts, the same to both."""
    measured: dict[str, list[Result]] = {name: [] for name in ports}
    for _ in range(rounds):
        bodies = [
            json.dumps(_new("writer", text)).encode() for text in islice(texts, round(MOST_CREATES_A_SECOND * seconds))
        ]
        requests = tuple(request_bytes("POST", PATH, {}, body) for body in bodies)
        for name, port in ports.items():
            plan = Plan(port, b"", CONNECTIONS, seconds, requests=requests)
            measured[name].append(measure(plan).require(201))
    _require_nothing_merged(ports["service"], measured["service"])
    return {name: _median(results) for name, results in measured.items()}


def _require_nothing_merged(port: int, results: list[Result]) -> None:
    """A merge is another piece of work than an insert."""
    sent = sum(result.next_number for result in results)
    kept = httpx.get(f"http://127.0.0.1:{port}{PATH}?user_id=writer&limit=1", trust_env=False).json()["total"]
    if kept < 0.999 * (sent - CONNECTIONS * len(results)):
        raise AssertionError(f"of {sent} texts {kept} were kept: too many were similar")


def _compared(plans: dict[str, Plan], rounds: int) -> dict[str, Rate]:
    measured = [{name: measure(plan).require(200) for name, plan in plans.items()} for _ in range(rounds)]
    return {name: _median([one[name] for one in measured]) for name in plans}


def _median(results: list[Result]) -> Rate:
    return Rate(
        statistics.median(result.per_second for result in results),
        statistics.median(result.p50_ms for result in results),
    )


def _shown(rate: Rate) -> tuple[str, str]:
    return f"{rate.per_second:,.0f}", f"{rate.p50_ms:.1f}"


if __name__ == "__main__":
    main()
