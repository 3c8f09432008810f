"""How many acknowledged writes a second, and how many share one commit?

At the `Database` port: N coroutines, each writing one row and waiting until it is on the disk.
Over HTTP: N connections that register users, and N that add one message each.
"""

import asyncio
import time
from pathlib import Path

from benchmarks.load import COUNTER, Plan, Result, measure, request_bytes
from benchmarks.report import print_ratio, print_table
from benchmarks.servers import ADMIN_KEY, Gateway, create_user, gateway, work_folder
from memory_gateway.storage.port import Transaction
from memory_gateway.storage.sqlite import SqliteDatabase

WAITING = (1, 16, 64)
CREATE = "CREATE TABLE facts (number INTEGER PRIMARY KEY, text TEXT NOT NULL)"
INSERT = "INSERT INTO facts (text) VALUES (:text)"


def main(seconds: float = 3.0) -> None:
    """Print the two tables."""
    at_the_port(seconds)
    over_http(seconds)


def at_the_port(seconds: float) -> None:
    with work_folder() as folder:
        rows = [asyncio.run(_writes(folder / f"{waiting}.db", waiting, seconds)) for waiting in WAITING]
    print_table(
        "Acknowledged writes at the Database port (synchronous=FULL)",
        ("waiting writers", "writes/s", "commits/s", "writes a commit"),
        [
            (str(waiting), f"{writes / seconds:,.0f}", f"{commits / seconds:,.0f}", f"{writes / commits:.1f}")
            for waiting, (writes, commits) in zip(WAITING, rows, strict=True)
        ],
    )
    (alone, _), *_, (together, commits) = rows
    print_ratio("64 writers against 1", together / alone, "at least 5")
    print_ratio("writes a commit with 64 writers", together / commits, "at least 8")


async def _writes(path: Path, waiting: int, seconds: float) -> tuple[int, int]:
    """Writes and commits in the measured time."""
    database = SqliteDatabase(path)
    await database.write(_create)
    before, deadline = (database.transactions, database.commits), time.perf_counter() + seconds
    await asyncio.gather(*(_write_until(database, deadline) for _ in range(waiting)))
    counted = database.transactions - before[0], database.commits - before[1]
    await database.close()
    return counted


async def _create(transaction: Transaction) -> None:
    await transaction.execute(CREATE)


async def _insert(transaction: Transaction) -> None:
    await transaction.execute(INSERT, {"text": "Tern launches on 25 September"})


async def _write_until(database: SqliteDatabase, deadline: float) -> None:
    while time.perf_counter() < deadline:
        await database.write(_insert)


def over_http(seconds: float) -> None:
    with gateway() as server:
        users = _series(server.port, _register_request(), seconds)
        messages = _series(server.port, _add_request(server), seconds)
    print_table(
        "Acknowledged writes over HTTP",
        ("connections", "POST /users a second", "p50 ms", "POST /memories/add a second", "p50 ms"),
        [
            (str(waiting), f"{a.per_second:,.0f}", f"{a.p50_ms:.1f}", f"{b.per_second:,.0f}", f"{b.p50_ms:.1f}")
            for waiting, a, b in zip(WAITING, users, messages, strict=True)
        ],
    )


def _series(port: int, request: bytes, seconds: float) -> list[Result]:
    results: list[Result] = []
    number = 0
    for connections in WAITING:
        plan = Plan(port, request, connections, seconds, first_number=number)
        results.append(measure(plan).require(200, 201))
        number = results[-1].next_number
    return results


def _register_request() -> bytes:
    return request_bytes("POST", "/users", {"X-Admin-Key": ADMIN_KEY}, b'{"user_id":"user-' + COUNTER + b'"}')


def _add_request(server: Gateway) -> bytes:
    """One message a call, each in a chat of its own."""
    message = (
        b'{"sender_id":"writer","role":"user","timestamp":17900' + COUNTER + b',"content":"message number ' + COUNTER
    )
    body = b'{"conversation_id":"' + COUNTER + b'","messages":[' + message + b'"}]}'
    return request_bytes("POST", "/memories/add", create_user(server, "writer").headers, body)


if __name__ == "__main__":
    main()
