"""How long does a search of one owner with 10,000 and with 100,000 turns take, and do others' turns change it?

Through the engine, with the vectors of made-up texts: the query's own embedding is not measured. The others are the
1,000,000 messages of `benchmarks.search_scale`, into whose store the owners are added.
``python -m benchmarks.search_owner --scale 0.01`` does it with a hundredth of everything.
"""

import argparse
import asyncio
import hashlib
import shutil
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np

from benchmarks.corpus import Corpus
from benchmarks.report import print_ratio, print_table
from benchmarks.search_scale import LARGE_USERS, WORDS, engine_version, made_store
from benchmarks.servers import CACHE
from memory_gateway.embeddings.cosine_scale import CosineScales
from memory_gateway.embeddings.port import Vectors
from memory_gateway.engine.engine import Engine
from memory_gateway.engine.parse import Parser, ReadText
from memory_gateway.engine.schemas import AddRequest, Caller, Method, SearchRequest
from memory_gateway.engine.vectors import VectorWorker
from memory_gateway.kit.clock import system_clock
from memory_gateway.storage.choose import FILE_NAME
from memory_gateway.storage.leases import Leases
from memory_gateway.storage.migrate import migrate
from memory_gateway.storage.sqlite import SqliteDatabase

OWNERS = {"reader": 10_000, "writer": 100_000}
METHODS: tuple[Method, ...] = ("keyword", "hybrid")
_QUERIES = 200
_QUERY_SEED = 2_000_000
_SEEDS = {"reader": 3_000_000, "writer": 3_000_001}
_DIMENSIONS = 384

Times = dict[tuple[str, Method], list[float]]


class TextEmbedder:
    """A vector that depends on the text alone and costs next to nothing."""

    model = "of-the-text"
    dimensions = _DIMENSIONS

    async def passages(self, texts: Sequence[str]) -> Vectors:
        return np.stack([self._vector(text) for text in texts])

    async def query(self, text: str) -> Vectors:
        return self._vector(text)

    async def close(self) -> None:
        """Nothing to give back."""

    def _vector(self, text: str) -> Vectors:
        seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
        vector = np.random.default_rng(seed).standard_normal(_DIMENSIONS).astype(np.float32)
        return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


class NoReader:
    """No message of these holds a document."""

    async def read_file(self, path: Path, name: str) -> ReadText:
        raise NotImplementedError

    async def read_bytes(self, content: bytes, name: str) -> ReadText:
        raise NotImplementedError


def main(scale: float = 1.0) -> None:
    """Print the medians, and what others' data add."""
    alone, among = asyncio.run(_stores(scale))
    rounds = [(asyncio.run(_measured(alone)), asyncio.run(_measured(among))) for _ in range(3)]
    times = [_joined([one[place] for one in rounds]) for place in (0, 1)]
    print_table(
        "A search of one owner, top 10, the query's vector at hand",
        ("turns of the owner", "method", "p50 ms", "p95 ms", "p50 among others'"),
        [
            (
                f"{round(OWNERS[owner] * scale):,}",
                method,
                f"{statistics.median(times[0][owner, method]):.1f}",
                f"{statistics.quantiles(times[0][owner, method], n=20)[-1]:.1f}",
                f"{statistics.median(times[1][owner, method]):.1f}",
            )
            for owner, method in times[0]
        ],
    )
    for owner, most in (("reader", "10, and p95 at most 30"), ("writer", "40")):
        print_ratio(f"p50 in ms, hybrid, {owner}", statistics.median(times[0][owner, "hybrid"]), f"at most {most}")
        ratio = statistics.median(times[1][owner, "hybrid"]) / statistics.median(times[0][owner, "hybrid"])
        print_ratio(f"among the others' turns against alone, {owner}", ratio, "at most 1.2")


def _joined(rounds: list[Times]) -> Times:
    return {key: [one for times in rounds for one in times[key]] for key in rounds[0]}


async def _stores(scale: float) -> tuple[Path, Path]:
    """Folders with the owners alone and with them among the others."""
    users = max(2, round(LARGE_USERS * scale))
    alone, among = (CACHE / f"owners-{engine_version()}-{scale}-{others}" for others in (0, users))
    for folder, others in ((alone, 0), (among, users)):
        if folder.exists():
            continue
        for outdated in CACHE.glob(f"owners-*-{others}"):
            shutil.rmtree(outdated)
        building = CACHE / f"building-owners-{others}"
        shutil.rmtree(building, ignore_errors=True)
        if others:
            shutil.copytree(await made_store(others), building)
        else:
            building.mkdir(parents=True)
        async with _engine(building) as (engine, worker):
            for owner, turns in OWNERS.items():
                await _add(engine, owner, round(turns * scale))
            await worker.catch_up()
        building.rename(folder)
    return alone, among


async def _add(engine: Engine, owner: str, turns: int) -> None:
    started = time.perf_counter()
    for session_id, messages in Corpus(WORDS, seed=_SEEDS[owner]).sessions(owner, turns):
        await engine.add(AddRequest(session_id, messages), Caller(owner))
    print(f"  made {owner}: {turns:,} turns, {turns / (time.perf_counter() - started):,.0f}/s", flush=True)


async def _measured(folder: Path) -> Times:
    times: Times = {(owner, method): [] for owner in OWNERS for method in METHODS}
    corpus = Corpus(WORDS, seed=_QUERY_SEED)
    queries = [corpus.query() for _ in range(_QUERIES)]
    async with _engine(folder) as (engine, _):
        for owner, method in times:
            for number, query in enumerate(queries):
                request = SearchRequest(query, user_id=owner, method=method, top_k=10)
                started = time.perf_counter()
                await engine.search(request, Caller(owner))
                if number >= _QUERIES // 10:
                    times[owner, method].append(1000 * (time.perf_counter() - started))
    return times


@asynccontextmanager
async def _engine(folder: Path) -> AsyncIterator[tuple[Engine, VectorWorker]]:
    database, embedder = SqliteDatabase(folder / FILE_NAME), TextEmbedder()
    await migrate(database, system_clock)
    leases = Leases(database, system_clock, "benchmark")
    engine = Engine(database, system_clock, Parser(NoReader(), (), folder), embedder, leases)
    try:
        yield engine, VectorWorker(database, embedder, leases, CosineScales(embedder))
    finally:
        await engine.close()
        await database.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the owners' and the others' turns")
    main(parser.parse_args().scale)
