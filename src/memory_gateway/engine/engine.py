"""The embedded engine: conversations and documents in, ranked memories out, on any `Database`."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from msgspec import UNSET

from memory_gateway.embeddings.port import Embedder
from memory_gateway.engine import holdings, store
from memory_gateway.engine.filters import Filter, parse_filter
from memory_gateway.engine.held import Held
from memory_gateway.engine.ingest import Portion, SessionKey, SessionWriter, portions
from memory_gateway.engine.items import ItemPlace
from memory_gateway.engine.listing import get
from memory_gateway.engine.meanings import MakeEmbedder, Meanings, MovedOn, make_none
from memory_gateway.engine.memory_ids import Kind, reference_of
from memory_gateway.engine.parse import Parser
from memory_gateway.engine.profiles import StatedFacts, no_stated_facts, profile_items
from memory_gateway.engine.ranking import QUERY_CHARS, Meaning, OtherModel, Query
from memory_gateway.engine.schemas import (
    AddReply,
    AddRequest,
    Along,
    Caller,
    FlushReply,
    FlushRequest,
    GetReply,
    GetRequest,
    MemoryKey,
    RawItem,
    SearchReply,
    SearchRequest,
)
from memory_gateway.engine.search import (
    filters_of,
    load_segments,
    open_for,
    open_scope,
    own_space,
    search,
)
from memory_gateway.engine.validation import check_add, check_get, check_place, check_search
from memory_gateway.engine.vector_sets import Reindexing, reindexed
from memory_gateway.engine.vectors import VectorWorker
from memory_gateway.kit.clock import Clock
from memory_gateway.kit.errors import EmbeddingUnavailable, UpstreamRefused
from memory_gateway.storage.leases import Leases
from memory_gateway.storage.port import Database, T, Transaction, Work

_DEFAULT_RADIUS = 0.5
_FEW_TURNS = 1_000
_FEW = 50  # sessions of a filter, and deleted memories: each takes a statement or more
_PATIENCE_SECONDS = 2.0  # a loaded model takes milliseconds; loading it takes a second or more


async def _nothing(_: Transaction) -> None:
    """What a transaction does beside its messages, mostly."""


class Engine:
    """Speaks EverOS's requests and replies. Without an embedder every method but ``vector`` answers.

    ``make_embedder`` makes one for a model that vectors are stored of, where it can.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        parser: Parser,
        embedder: Embedder | None,
        leases: Leases,
        *,
        stated_facts: StatedFacts = no_stated_facts,
        make_embedder: MakeEmbedder = make_none,
    ) -> None:
        self._database = database
        self._clock = clock
        self._parser = parser
        self._stated_facts = stated_facts
        self._held = Held()
        self._meanings: Meanings | None = None
        self._last_model: str | None = None  # that memory was searched by; None for this process's own
        self._worker: VectorWorker | None = None
        if embedder is not None:
            self._meanings = Meanings(database, embedder, make_embedder)
            self._worker = VectorWorker(database, embedder, leases, self._meanings.scales)

    def start(self) -> None:
        """Begin embedding in the background."""
        if self._worker is not None:
            self._worker.start()

    async def close(self) -> None:
        """Stop the background work; what is left is found again at the next start."""
        if self._worker is not None:
            await self._worker.stop()
        if self._meanings is not None:
            await self._meanings.close()

    async def add(self, request: AddRequest, caller: Caller) -> AddReply:
        """Store messages; they are findable by keyword when this returns. Repeating a request adds nothing."""
        check_add(request)
        key = SessionKey(caller.user_id or "", request.app_id, request.project_id, request.session_id)
        prepared = await self._parser.prepare(request.messages, caller)
        batches = list(portions(prepared))
        closed = False
        for number, batch in enumerate(batches, start=1):
            steps = _steps(caller.along, first=number == 1, last=number == len(batches))
            closed |= await self._write(key, batch, *steps)
        self.wake()
        return AddReply(
            message_count=len(request.messages),
            status="extracted" if closed else "accumulated",
            notes=tuple(note for message in prepared for note in message.notes),
        )

    async def _write(
        self, key: SessionKey, batch: list[Portion], before: Work[None] = _nothing, after: Work[None] = _nothing
    ) -> bool:
        async def work(transaction: Transaction) -> bool:
            await before(transaction)
            writer = SessionWriter(transaction, key, self._clock())
            await writer.write(batch)
            await after(transaction)
            return writer.closed_any

        return await self._database.write(work, owner=key.user_id)

    async def flush(self, request: FlushRequest, caller: Caller) -> FlushReply:
        """Close the session's open segment."""
        check_place(request)
        key = SessionKey(caller.user_id or "", request.app_id, request.project_id, request.session_id)
        closed = await self._database.write(
            lambda transaction: self._close_session(transaction, key), owner=key.user_id
        )
        return FlushReply(status="extracted" if closed else "no_extraction")

    async def _close_session(self, transaction: Transaction, key: SessionKey) -> bool:
        params = {"user_id": key.user_id, "app_id": key.app_id, "project_id": key.project_id}
        if await transaction.fetch_one(store.FIND_SPACE, params) is None:
            return False
        return await SessionWriter(transaction, key, self._clock()).close_current()

    async def search(self, request: SearchRequest, caller: Caller) -> SearchReply:
        """Rank the owner's memories. Raises `UpstreamRefused` (422) for a faulty filter or a missing embedder."""
        check_search(request)
        small = await self._is_small(request, parse_filter(filters_of(request)), caller)
        reply = await self._ranked(request, caller, small=small)
        if request.include_profile:
            reply.profiles.extend({**item, "score": None} for item in await self._profiles(request, caller))
        return reply

    async def _ranked(self, request: SearchRequest, caller: Caller, *, small: bool) -> SearchReply:
        meanings: dict[str, Meaning | None] = {}
        query = Query(
            text=request.query,
            method=request.method,
            meanings=meanings,
            radius=self._radius(request),
            now_ms=self._clock(),
            min_score=0.0 if request.min_score is UNSET else request.min_score,
        )
        models = self._models_for(request)
        if models is None:
            return await self._read(lambda tx: search(tx, request, query, caller, self._held), small=small)
        opened = await self._read(lambda tx: open_for(tx, request, caller, self._held), small=small)
        space_no, text = (0, query.text[:QUERY_CHARS]) if opened is None else (opened.scope.space_no, opened.named.rest)
        meanings |= await _meant(models, request, text, self._last_model, space_no)
        while True:
            try:
                return await self._read(
                    lambda tx: search(tx, request, query, caller, self._held, opened=opened), small=small
                )
            except OtherModel as other:
                meanings |= await _meant(models, request, text, other.model, other.space_no)
                self._last_model = other.model if meanings.get(other.model) else None

    async def _read(self, work: Work[T], *, small: bool) -> T:
        """What little memory there is, is read sooner than another thread has begun."""
        return await (self._database.read_short(work) if small else self._database.read(work))

    async def _is_small(self, request: SearchRequest, wanted: Filter | None, caller: Caller) -> bool:
        if not self._database.reads_inline:
            return False
        sessions = 0 if wanted is None or wanted.sessions is None else len(wanted.sessions)
        if caller.shared_agents or max(sessions, len(caller.hidden), len(caller.hidden_sessions)) > _FEW:
            return False
        space_no = await own_space(self._database, caller, request.app_id, request.project_id)
        row = None if space_no is None else await self._database.fetch_one(store.SPACE_COUNTS, {"space_no": space_no})
        return row is None or row[2] <= _FEW_TURNS

    async def _profiles(self, request: SearchRequest | GetRequest, caller: Caller) -> list[RawItem]:
        """The caller's own profile; nobody else's is to be had, and agents have none."""
        if caller.user_id is None or request.user_id != caller.user_id:
            return []
        hidden = {*caller.hidden, *caller.left_out}
        if MemoryKey("profile", caller.user_id) in hidden:
            return []
        place = ItemPlace(caller.user_id, request.app_id, request.project_id)
        return profile_items(place, await self._stated_facts(caller.user_id))

    def _radius(self, request: SearchRequest) -> float:
        if request.radius is not UNSET:
            return request.radius
        return _DEFAULT_RADIUS if request.top_k == -1 else 0.0

    def _models_for(self, request: SearchRequest) -> Meanings | None:
        """None where words alone shall answer."""
        if request.method == "vector" and self._meanings is None:
            raise UpstreamRefused(422, "PROVIDER_NOT_CONFIGURED", "method 'vector' needs an embedder; none is set")
        return None if request.method == "keyword" else self._meanings

    async def get(self, request: GetRequest, caller: Caller) -> GetReply:
        """A page of one kind of memory, in order of time."""
        check_get(request)
        if request.memory_type == "profile":
            profiles = await self._profiles(request, caller)
            return GetReply(profiles=profiles, total_count=len(profiles), count=len(profiles))
        return await self._database.read(lambda transaction: get(transaction, request, caller))

    async def seal(self, app_id: str, project_id: str, memory: MemoryKey, caller: Caller) -> None:
        """Close the segment behind a memory, if it is open, so that later turns become another episode."""

        async def work(transaction: Transaction) -> None:
            space_no = await own_space(transaction, caller, app_id, project_id)
            if space_no is not None:
                segment_no = await _segment_behind(transaction, space_no, memory)
                if segment_no is not None:
                    await transaction.execute(store.CLOSE_SEGMENT, {"space_no": space_no, "segment_no": segment_no})

        await self._database.write(work, owner=caller.user_id or "")

    async def within(self, request: SearchRequest, episode_ids: list[str], caller: Caller) -> frozenset[str]:
        """Those of the episodes that exist and that the request's filters keep."""
        wanted = parse_filter(filters_of(request))
        place = ItemPlace("", request.app_id, request.project_id)

        async def work(transaction: Transaction) -> frozenset[str]:
            space_no = await own_space(transaction, caller, request.app_id, request.project_id)
            if space_no is None:
                return frozenset()
            kept = await load_segments(transaction, await open_scope(transaction, space_no, place, wanted, caller))
            return frozenset(identifier for identifier in episode_ids if _own_segment(identifier, "ep") in kept)

        return await self._database.read(work)

    async def erase(self, user_id: str) -> None:
        """Forget everything this caller wrote."""
        self._held.forget(await holdings.erase(self._database, user_id))

    def export(self, user_id: str) -> AsyncIterator[dict[str, Any]]:
        """Every stored message of this caller."""
        return holdings.export(self._database, user_id)

    async def backlog(self) -> int:
        """Turns that wait for their vector; 0 without an embedder."""
        if self._meanings is None:
            return 0
        row = await self._database.fetch_one(store.BACKLOG)
        return int(row[0]) if row else 0

    async def reindexing(self) -> Reindexing | None:
        """How far the vectors of a changed model are; None where all are of this process's model."""
        if self._meanings is None or (model := self._meanings.own_model) is None:
            return None
        return await reindexed(self._database, model, self._meanings.can_ask)

    @property
    def vectors_healthy(self) -> bool:
        """Whether an embedder is set and answers."""
        return self._worker is not None and self._worker.healthy

    @property
    def has_embedder(self) -> bool:
        return self._meanings is not None

    def wake(self) -> None:
        """Something was added, here or by a child process."""
        if self._worker is not None:
            self._worker.wake()


def _steps(along: Along | None, *, first: bool, last: bool) -> tuple[Work[None], Work[None]]:
    """What else a transaction of an add does, before and after its messages."""
    return (
        along.before if along is not None and first else _nothing,
        along.after if along is not None and last else _nothing,
    )


async def _meant(
    models: Meanings, request: SearchRequest, text: str, model: str | None, space_no: int
) -> dict[str, Meaning | None]:
    """By model; None where words alone shall answer: the model cannot be asked, is away or still being loaded."""
    patience = None if request.method == "vector" else _PATIENCE_SECONDS
    try:
        async with asyncio.timeout(patience):
            meaning = await models.of(text, model, space_no)
    except MovedOn:
        return await _meant(models, request, text, None, space_no)
    except (EmbeddingUnavailable, TimeoutError):  # health says that vectors are missing
        if request.method == "vector":
            raise
        return {model or "": None}
    return {meaning.model: meaning}


async def _segment_behind(transaction: Transaction, space_no: int, memory: MemoryKey) -> int | None:
    if memory.memory_type == "unprocessed_message":
        row = await transaction.fetch_one(store.MESSAGE_BY_ID, {"space_no": space_no, "id": memory.memory_id})
        return int(row[1]) if row else None
    return _own_segment(memory.memory_id, "ac" if memory.memory_type == "agent_case" else "ep")


def _own_segment(identifier: str, kind: Kind) -> int | None:
    reference = reference_of(identifier, kind)
    return None if reference is None or reference.space_no is not None else reference.number
