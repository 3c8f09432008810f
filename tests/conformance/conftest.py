"""One suite, two upstreams: what a test asserts holds for both, unless it is in `test_differences.py`.

``embedded`` is the engine on SQLite, ``postgres`` the same on PostgreSQL.
``everos`` plays back what a live EverOS 1.5.1 answered, ``live`` asks one: ``pytest --everos live tests/conformance``.
``--everos record`` does, and writes `tests/conformance/everos-recorded.jsonl`, after a change of the suite.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import httpx
import pytest

from memory_gateway.engine.schemas import SearchReply
from memory_gateway.server import open_storage
from memory_gateway.settings import Settings
from memory_gateway.upstream.embedded import EmbeddedUpstream, open_engine
from memory_gateway.upstream.everos import EverosUpstream
from memory_gateway.upstream.port import Upstream
from tests.conformance.corpus import SESSIONS, seed
from tests.conformance.recording import Exchange, Player, Recorder, save
from tests.conformance.world import METHODS, World, sessions
from tests.everos_live.server import EverosServer
from tests.fakes.databases import copied_database, database_url, on_server
from tests.fakes.embedder import HashEmbedder
from tests.fakes.everos import BASE_URL, TransportWire

SEEDED = f"conformance_{os.getpid()}"  # parallel tests may share a server


@pytest.fixture(params=["embedded", "postgres", "everos", pytest.param("live", marks=pytest.mark.live)])
def upstream_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def seeded_url(upstream_name: str, request: pytest.FixtureRequest) -> str | None:
    """The server with the seeded database, where the engine stores in one."""
    if upstream_name != "postgres":
        return None
    request.getfixturevalue("seeded_database")
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
async def world(
    everos: tuple[str, httpx.AsyncBaseTransport] | None, seeded_folder: Path, seeded_url: str | None, tmp_path: Path
) -> AsyncIterator[World]:
    """The upstream with the corpus in it."""
    if seeded_url is not None:
        async with copied_database(seeded_url, SEEDED) as url, embedded(tmp_path / "data", url) as upstream:
            yield World("embedded", upstream)
        return
    if everos is None:
        shutil.copytree(seeded_folder, tmp_path / "data")
        async with embedded(tmp_path / "data") as upstream:
            yield World("embedded", upstream)
        return
    url, transport = everos
    upstream = EverosUpstream(url, wire=TransportWire(transport, url))
    try:
        yield World("everos", upstream, tries=600, pause=0.0 if url == BASE_URL else 0.2)
    finally:
        await upstream.close()


@asynccontextmanager
async def embedded(folder: Path, database_url: str | None = None) -> AsyncIterator[Upstream]:
    """The embedded upstream with an embedder, so that every method answers."""
    settings = Settings(data_dir=folder, database_url=database_url, key_secret="a-secret-of-the-tests")
    async with (
        open_storage(settings) as database,
        open_engine(settings, database, HashEmbedder(), holder="conformance") as engine,
    ):
        engine.start()
        yield EmbeddedUpstream(engine, settings)


@pytest.fixture(scope="session")
def seeded_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder of the embedded upstream with the corpus in it, every turn with its vector."""
    folder = tmp_path_factory.mktemp("conformance") / "data"
    asyncio.run(seed_embedded(folder))
    return folder


@pytest.fixture(scope="session")
def seeded_database(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The same in a database, of which every test gets a copy."""
    asyncio.run(on_server(postgres_url, f"DROP DATABASE IF EXISTS {SEEDED}", f"CREATE DATABASE {SEEDED}"))
    asyncio.run(seed_embedded(tmp_path_factory.mktemp("conformance"), database_url(postgres_url, SEEDED)))


async def seed_embedded(folder: Path, database_url: str | None = None) -> None:
    """Write the corpus, and wait for its vectors."""
    async with asyncio.timeout(60), embedded(folder, database_url) as upstream:
        await seed(upstream)
        while (await upstream.health()).backlog:
            await asyncio.sleep(0.01)


@pytest.fixture
def everos(upstream_name: str, request: pytest.FixtureRequest) -> Iterator[tuple[str, httpx.AsyncBaseTransport] | None]:
    """The way to EverOS, where it is this test's upstream: a live server's, or the recording."""
    test = f"{request.node.path.stem}::{request.node.name}"
    if upstream_name in {"embedded", "postgres"}:
        yield None
    elif upstream_name == "everos":
        yield BASE_URL, Player(test)
    else:
        url: str = request.getfixturevalue("seeded_live_server")
        recorder = Recorder(test.replace("[live", "[everos", 1))
        exchanges: list[Exchange] = request.getfixturevalue("recorded")
        yield url, recorder
        exchanges.extend(recorder.exchanges)


@pytest.fixture(scope="session")
def recorded(request: pytest.FixtureRequest) -> Iterator[list[Exchange]]:
    exchanges: list[Exchange] = []
    yield exchanges
    if request.config.getoption("--everos") == "record":
        save(exchanges)


@pytest.fixture(scope="session")
def seeded_live_server(live_everos: EverosServer) -> str:
    """Its URL. The corpus is written once, and every method finds all of it."""
    asyncio.run(_on(live_everos.url, partial(seed, settle=live_everos.settle)))
    live_everos.index_words()
    asyncio.run(_on(live_everos.url, _require_all))
    return live_everos.url


async def _on(url: str, work: Callable[[Upstream], Awaitable[None]]) -> None:
    upstream = EverosUpstream(url)
    try:
        await work(upstream)
    finally:
        await upstream.close()


async def _require_all(upstream: Upstream) -> None:
    world = World("everos", upstream, tries=240, pause=0.5)
    for method in METHODS:
        ask = partial(world.search, method=method)
        assert _shows_all(await world.until(ask, _shows_all)), method


def _shows_all(reply: SearchReply) -> bool:
    return set(sessions(reply)) == SESSIONS
