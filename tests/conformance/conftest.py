"""One suite, two upstreams: what a test asserts holds for both, unless it is in `test_differences.py`.

The EverOS side plays back what a live EverOS 1.5.1 answered. To run it on a live server, or to record it anew after
a change of the suite (on an empty root; `tests/conformance/everos-recorded.jsonl` is written):

    CONFORMANCE_EVEROS_URL=http://127.0.0.1:8000 [CONFORMANCE_RECORD=1] pytest tests/conformance -k everos
"""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Iterator
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
from tests.fakes.embedder import HashEmbedder
from tests.fakes.everos import BASE_URL

LIVE_URL = os.environ.get("CONFORMANCE_EVEROS_URL")
RECORDING = bool(os.environ.get("CONFORMANCE_RECORD"))


@pytest.fixture(params=["embedded", "everos"])
def upstream_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def world(everos: httpx.AsyncBaseTransport | None, seeded_folder: Path, tmp_path: Path) -> AsyncIterator[World]:
    """The upstream with the corpus in it."""
    if everos is None:
        shutil.copytree(seeded_folder, tmp_path / "data")
        async with embedded(tmp_path / "data") as upstream:
            yield World("embedded", upstream)
        return
    async with httpx.AsyncClient(transport=everos) as client:
        yield World("everos", EverosUpstream(LIVE_URL or BASE_URL, client=client), 100, 0.3 if LIVE_URL else 0.0)


@asynccontextmanager
async def embedded(folder: Path) -> AsyncIterator[Upstream]:
    """The embedded upstream on a fresh database, with an embedder, so that every method answers."""
    settings = Settings(data_dir=folder)
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
    asyncio.run(_seed_embedded(folder))
    return folder


async def _seed_embedded(folder: Path) -> None:
    async with asyncio.timeout(60), embedded(folder) as upstream:
        await seed(upstream)
        while (await upstream.health()).backlog:
            await asyncio.sleep(0.01)


@pytest.fixture
def everos(upstream_name: str, request: pytest.FixtureRequest) -> Iterator[httpx.AsyncBaseTransport | None]:
    """The way to EverOS, where it is this test's upstream: a live server's, or the recording."""
    if upstream_name != "everos":
        yield None
        return
    test = f"{request.node.path.stem}::{request.node.name}"
    if LIVE_URL is None:
        yield Player(test)
        return
    request.getfixturevalue("seeded_live_server")
    recorder = Recorder(test)
    exchanges: list[Exchange] = request.getfixturevalue("recorded")
    yield recorder
    exchanges.extend(recorder.exchanges)


@pytest.fixture(scope="session")
def recorded() -> Iterator[list[Exchange]]:
    exchanges: list[Exchange] = []
    yield exchanges
    if RECORDING:
        save(exchanges)


@pytest.fixture(scope="session")
def seeded_live_server() -> None:
    """The corpus, written once, when every method finds all of it (keyword recall on a new root takes a minute)."""
    asyncio.run(_seed_live_server())


async def _seed_live_server() -> None:
    upstream = EverosUpstream(LIVE_URL or "")
    try:
        await seed(upstream)
        world = World("everos", upstream, tries=200, pause=1.0)
        for method in METHODS:
            ask = partial(world.search, method=method)
            assert _shows_all(await world.until(ask, _shows_all)), method
    finally:
        await upstream.close()


def _shows_all(reply: SearchReply) -> bool:
    return set(sessions(reply)) == SESSIONS
