"""The embedded engine as an upstream: in process, but for large files, which a child process reads and indexes."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import structs

from memory_gateway.documents.extract import Extractor
from memory_gateway.documents.turns import reading_for
from memory_gateway.embeddings.choose import embedder_of
from memory_gateway.embeddings.port import Embedder
from memory_gateway.engine.engine import Engine
from memory_gateway.engine.parse import Parser
from memory_gateway.engine.profiles import StatedFacts, no_stated_facts
from memory_gateway.engine.reader import LibraryReader
from memory_gateway.engine.schemas import (
    AddReply,
    AddRequest,
    Caller,
    FlushReply,
    FlushRequest,
    GetReply,
    GetRequest,
    MemoryKey,
    SearchReply,
    SearchRequest,
)
from memory_gateway.kit.clock import Clock, system_clock
from memory_gateway.settings import Settings
from memory_gateway.storage.leases import Leases
from memory_gateway.storage.port import Database
from memory_gateway.upstream.indexing import IndexingChildren
from memory_gateway.upstream.port import Erasure, UpstreamHealth, UpstreamTraits


@asynccontextmanager
async def open_engine(
    settings: Settings,
    database: Database,
    embedder: Embedder | None,
    *,
    holder: str,
    clock: Clock = system_clock,
    stated_facts: StatedFacts = no_stated_facts,
) -> AsyncIterator[Engine]:
    """The engine as the settings want it. ``holder`` names this process in leases."""
    async with Extractor() as extractor:
        reader = LibraryReader(extractor, settings.data_dir / "tmp", settings.extraction_timeout)
        parser = Parser(reader, settings.allowed_file_roots, settings.data_dir)
        engine = Engine(
            database,
            clock,
            parser,
            embedder,
            Leases(database, clock, holder),
            stated_facts=stated_facts,
            make_embedder=partial(embedder_of, settings),
        )
        try:
            yield engine
        finally:
            await engine.close()


class EmbeddedUpstream:
    """Speaks EverOS's requests; each caller's memory lies in spaces of its own."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self._engine = engine
        self._settings = settings
        self._children = IndexingChildren(settings)

    @property
    def name(self) -> str:
        return "embedded"

    @property
    def traits(self) -> UpstreamTraits:
        return UpstreamTraits(
            shares_files=True,
            opens_client_uris=False,
            leaves_out_hidden=True,
            stable_ids=True,
            separates_agents=True,
            splits_messages=True,
            can_erase=True,
            writes_along=True,
        )

    async def add(self, request: AddRequest, caller: Caller) -> AddReply:
        """Findable when this returns. A large file of the gateway's own costs this process neither memory nor time."""
        if not any(self._is_large(path) for path in caller.own_files.values()):
            with reading_for(caller.user_id or ""):
                return await self._engine.add(request, caller)
        reply = await self._children.index(request, caller)
        self._engine.wake()
        return reply

    def _is_large(self, path: Path) -> bool:
        return path.stat().st_size > self._settings.inline_index_bytes

    async def flush(self, request: FlushRequest, caller: Caller) -> FlushReply:
        return await self._engine.flush(request, caller)

    async def search(self, request: SearchRequest, caller: Caller) -> SearchReply:
        return await self._engine.search(request, caller)

    async def get(self, request: GetRequest, caller: Caller) -> GetReply:
        return await self._engine.get(request, caller)

    async def seal(self, app_id: str, project_id: str, memory: MemoryKey, caller: Caller) -> None:
        await self._engine.seal(app_id, project_id, memory, caller)

    async def within(self, request: SearchRequest, episode_ids: list[str], caller: Caller) -> frozenset[str] | None:
        return await self._engine.within(request, episode_ids, caller)

    async def erase(self, user_id: str) -> Erasure:
        await self._children.stop(user_id)
        await self._engine.erase(user_id)
        return Erasure(erased=True)

    def export(
        self,
        user_id: str,
        places: Sequence[tuple[str, str]],  # noqa: ARG002  # the engine knows them itself
    ) -> AsyncIterator[dict[str, Any]]:
        return self._engine.export(user_id)

    async def health(self) -> UpstreamHealth:
        has_embedder = self._engine.has_embedder
        reindexing = await self._engine.reindexing()
        finds_less = reindexing is not None and reindexing.searched_by == "words"
        return UpstreamHealth(
            name=self.name,
            healthy=not has_embedder or (self._engine.vectors_healthy and not finds_less),
            capabilities={"keyword": True, "vector": has_embedder, "llm": False},
            backlog=await self._engine.backlog(),
            details={} if reindexing is None else {"reindexing": structs.asdict(reindexing)},
        )

    async def close(self) -> None:
        """The engine is closed by whoever opened it."""
