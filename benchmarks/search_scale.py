"""Does a keyword search of one user get slower when there are a hundred times as many other users?

1,000,000 messages of 1,000 users against 10,000 messages of 10, through the upstream port, each user asking in turn.
The stores are made once, from fixed seeds, and kept under ``benchmarks/.cache`` (about a gigabyte, and some minutes); a
changed engine makes new ones.
``python -m benchmarks.search_scale --scale 0.01`` does it with fewer users.
"""

import argparse
import asyncio
import hashlib
import shutil
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.corpus import Corpus, vocabulary
from benchmarks.report import print_ratio, print_table
from benchmarks.servers import CACHE
from memory_gateway.engine.schemas import AddRequest, Caller, SearchRequest
from memory_gateway.server import open_storage, open_upstream
from memory_gateway.settings import Settings
from memory_gateway.upstream.port import Upstream

MESSAGES_A_USER = 1_000
SMALL_USERS = 10
LARGE_USERS = 1_000
QUERIES = 400
QUERY_SEED = 1_000_000  # no user has it
WORDS = vocabulary()
PACKAGE = Path(__file__).parent.parent / "src" / "memory_gateway"


def main(scale: float = 1.0) -> None:
    """Print the median search of both stores and their ratio."""
    small, large = SMALL_USERS, max(SMALL_USERS + 1, round(LARGE_USERS * scale))
    folders = {users: asyncio.run(made_store(users)) for users in (small, large)}
    # small and large in turns, so that a busy moment of the machine meets both
    rounds = [{users: asyncio.run(_search_times(folder, users)) for users, folder in folders.items()} for _ in range(3)]
    times = {users: [one for measured in rounds for one in measured[users]] for users in folders}
    print_table(
        "Keyword search of one user, top 10",
        ("messages in all", "users", "p50 ms", "p95 ms", "MiB on disk"),
        [
            (
                f"{users * MESSAGES_A_USER:,}",
                f"{users:,}",
                f"{statistics.median(times[users]):.2f}",
                f"{statistics.quantiles(times[users], n=20)[-1]:.2f}",
                f"{sum(file.stat().st_size for file in folder.iterdir()) / (1 << 20):,.0f}",
            )
            for users, folder in folders.items()
        ],
    )
    ratio = statistics.median(times[large]) / statistics.median(times[small])
    print_ratio(f"{large:,} users against {small}", ratio, "at most 2")


async def made_store(users: int) -> Path:
    """The folder that holds these users' conversations, made if it is not there."""
    folder = CACHE / f"search-{engine_version()}-{users}"
    if folder.exists():
        return folder
    for outdated in CACHE.glob(f"search-*-{users}"):
        shutil.rmtree(outdated)
    building = CACHE / f"building-{users}"
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    started = time.perf_counter()
    async with _upstream(building) as upstream:
        for number in range(users):
            await _add_user(upstream, number)
            if number % 100 == 99:
                _tell(users, number + 1, started)
    _tell(users, users, started)
    building.rename(folder)
    return folder


def _tell(users: int, made: int, started: float) -> None:
    seconds = time.perf_counter() - started
    print(
        f"  making the store: {made:,} of {users:,} users, {made * MESSAGES_A_USER / seconds:,.0f} messages/s",
        flush=True,
    )


async def _add_user(upstream: Upstream, number: int) -> None:
    user_id = f"user-{number}"
    for session_id, messages in Corpus(WORDS, seed=number).sessions(user_id, MESSAGES_A_USER):
        await upstream.add(AddRequest(session_id, messages), Caller(user_id))


async def _search_times(folder: Path, users: int) -> list[float]:
    corpus = Corpus(WORDS, seed=QUERY_SEED)
    async with _upstream(folder) as upstream:
        times = [
            await _search_time(upstream, f"user-{number * 7_919 % users}", corpus.query()) for number in range(QUERIES)
        ]
    return times[QUERIES // 10 :]


async def _search_time(upstream: Upstream, user_id: str, query: str) -> float:
    """Milliseconds of one search."""
    request = SearchRequest(query, user_id=user_id, method="keyword", top_k=10)
    started = time.perf_counter()
    reply = await upstream.search(request, Caller(user_id))
    elapsed = 1000 * (time.perf_counter() - started)
    if not reply.episodes:
        raise AssertionError(f"nothing found for {query!r} of {user_id}")
    return elapsed


@asynccontextmanager
async def _upstream(folder: Path) -> AsyncIterator[Upstream]:
    settings = Settings(data_dir=folder, embedder="none")
    async with open_storage(settings) as database, open_upstream(settings, database) as upstream:
        yield upstream


def engine_version() -> str:
    """Changes with the engine's code and the schema, so that an old store is never measured by new code."""
    digest = hashlib.sha256()
    for path in sorted([*(PACKAGE / "engine").glob("*.py"), *(PACKAGE / "storage" / "migrations").glob("*.sql")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:10]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the 1,000 users of the large store")
    return parser.parse_args()


if __name__ == "__main__":
    main(_arguments().scale)
