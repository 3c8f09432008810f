"""What the embedded engine says of itself while its embedding model changes."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memory_gateway.embeddings.cosine_scale import CosineScales
from memory_gateway.engine.schemas import AddRequest, Caller, Message
from memory_gateway.engine.vectors import VectorWorker
from memory_gateway.kit.clock import system_clock
from memory_gateway.server import _reindexed
from memory_gateway.settings import Settings
from memory_gateway.storage.leases import Leases
from memory_gateway.storage.migrate import migrate
from memory_gateway.upstream.embedded import EmbeddedUpstream, open_engine
from tests.fakes.databases import AnyDatabase, open_test_database
from tests.fakes.embedder import HashEmbedder


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[AnyDatabase]:
    opened = open_test_database(tmp_path / "engine.db")
    await migrate(opened, system_clock)
    yield opened
    await opened.close()


async def embed(database: AnyDatabase, embedder: HashEmbedder) -> None:
    leases = Leases(database, system_clock, "worker")
    await VectorWorker(database, embedder, leases, CosineScales(embedder)).catch_up()


async def test_it_tells_how_far_the_vectors_of_a_changed_model_are(tmp_path: Path, database: AnyDatabase) -> None:
    settings = Settings(data_dir=tmp_path, embedder="none")
    new = HashEmbedder(32, "new")
    async with open_engine(settings, database, new, holder="test") as engine:
        upstream = EmbeddedUpstream(engine, settings)
        messages = (Message(sender_id="ann", role="user", timestamp=1_780_000_000_000, content="green tea"),)
        await upstream.add(AddRequest("chat:1", messages), Caller(user_id="ann"))
        await embed(database, HashEmbedder(64, "old"))
        health = await upstream.health()
        assert health.details == {"reindexing": {"done": 0, "of": 1, "searched_by": "words"}}
        assert not health.healthy, "by meaning it finds nothing until then"
        assert await _reindexed(upstream) == 0.0
        await embed(database, new)
        health = await upstream.health()
        assert (health.details, health.backlog) == ({}, 0)
        assert await _reindexed(upstream) == 1.0
