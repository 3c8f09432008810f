"""How much quicker is ``GET /resources`` with 50 rows than its twin on FastAPI, Pydantic and SQLAlchemy?

Both servers read one database file, check the same keys, and must give the same JSON. They are loaded in turns, each
alone while it is measured, and the medians are compared.
"""

import asyncio
import hashlib
import statistics
from pathlib import Path

import httpx

from benchmarks.load import Plan, measure, request_bytes
from benchmarks.report import print_ratio, print_table
from benchmarks.servers import User, asgi, create_user, gateway, work_folder
from memory_gateway.kit.clock import rfc3339
from memory_gateway.kit.ids import uuid7_id
from memory_gateway.storage.port import Transaction
from memory_gateway.storage.sqlite import SqliteDatabase

ROWS = 50
CONNECTIONS = 16
KEY_SECRET = "the benchmark's own secret"
PATH = f"/resources?limit={ROWS}"

INSERT = """
INSERT INTO user_resources (id, user_id, session_id, name, title, content_type, mime_type, size, sha256, stored_name,
  internal_uri, status, created_at)
VALUES (:id, :user_id, :session_id, :name, :title, 'pdf', 'application/pdf', :size, :sha256, :name, :internal_uri,
  'indexed', :created_at)
"""


def main(seconds: float = 3.0, rounds: int = 5) -> None:
    """Print requests a second of both and the ratio."""
    with work_folder() as folder, gateway(folder, key_secret=KEY_SECRET) as server:
        reader, stranger = create_user(server, "reader"), create_user(server, "reader-2")
        database = _database_of(folder)
        asyncio.run(fill(database, [reader, stranger]))
        with asgi("benchmarks.twin.app:app", "/docs", TWIN_DATABASE=str(database), TWIN_KEY_SECRET=KEY_SECRET) as twin:
            _require_equal_answers(server.port, twin, reader)
            plans = {name: _plan(port, reader, seconds) for name, port in (("gateway", server.port), ("twin", twin))}
            measured = [{name: measure(plan).require(200) for name, plan in plans.items()} for _ in range(rounds)]
    medians = {name: statistics.median(one[name].per_second for one in measured) for name in plans}
    latencies = {name: statistics.median(one[name].p50_ms for one in measured) for name in plans}
    print_table(
        f"GET /resources, {ROWS} rows, {CONNECTIONS} connections, medians of {rounds} alternating rounds",
        ("server", "requests/s", "p50 ms"),
        [(name, f"{medians[name]:,.0f}", f"{latencies[name]:.1f}") for name in plans],
    )
    print_ratio("gateway against its twin", medians["gateway"] / medians["twin"], "at least 5")


def _plan(port: int, user: User, seconds: float) -> Plan:
    return Plan(port, request_bytes("GET", PATH, user.headers), CONNECTIONS, seconds)


def _database_of(folder: Path) -> Path:
    (database,) = (folder / "data").glob("*.db")
    return database


async def fill(path: Path, users: list[User]) -> None:
    database = SqliteDatabase(path)

    async def work(transaction: Transaction) -> None:
        for user in users:
            await transaction.execute_many(INSERT, [_row(user.user_id, number) for number in range(ROWS)])

    await database.write(work)
    await database.close()


def _row(user_id: str, number: int) -> dict[str, object]:
    resource_id = uuid7_id()
    name = f"季度报告 quarterly report {number:02}.pdf"
    return {
        "id": resource_id,
        "user_id": user_id,
        "session_id": f"resource:{user_id}:{resource_id}",
        "name": name,
        "title": f"Report of quarter {number}",
        "size": 18_000 + number,
        "sha256": hashlib.sha256(resource_id.encode()).hexdigest(),
        "internal_uri": f"file:///nowhere/{resource_id}",
        "created_at": rfc3339(1_790_000_000_000 + number * 60_000),
    }


def _require_equal_answers(gateway_port: int, twin_port: int, user: User) -> None:
    answers = [
        httpx.get(f"http://127.0.0.1:{port}{PATH}", headers=user.headers, trust_env=False)
        for port in (gateway_port, twin_port)
    ]
    bodies = [answer.raise_for_status().json() for answer in answers]
    if bodies[0] != bodies[1] or len(bodies[0]["resources"]) != ROWS:
        raise AssertionError(f"the twin does not answer as the gateway does: {bodies}")
    refused = httpx.get(
        f"http://127.0.0.1:{twin_port}{PATH}", headers={**user.headers, "X-User-Key": "x"}, trust_env=False
    )
    if refused.status_code != 401:
        raise AssertionError("the twin lets a wrong key in")


if __name__ == "__main__":
    main()
