"""The composition root: settings to rooms, rooms to an app. `memory_gateway.serve` puts the app on a socket."""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from typing import Literal

from litestar import Litestar
from msgspec import Struct

from memory_gateway.blobs.choose import TEMPORARY_FOLDER, open_blobs
from memory_gateway.blobs.port import BlobStore
from memory_gateway.embeddings.choose import choose_embedder
from memory_gateway.engine.profiles import StatedFact, StatedFacts, no_stated_facts
from memory_gateway.gateway.accounts.erasure import UserErasure
from memory_gateway.gateway.accounts.export import UserExport
from memory_gateway.gateway.accounts.secret_files import load_or_create_secret
from memory_gateway.gateway.accounts.service import Accounts
from memory_gateway.gateway.app import build_app
from memory_gateway.gateway.attachments.service import Attachments
from memory_gateway.gateway.audit.service import Audit
from memory_gateway.gateway.health import Health, free_bytes_of
from memory_gateway.gateway.limits.sharing import SharedLimits
from memory_gateway.gateway.memories import routes as memories_routes
from memory_gateway.gateway.memories.door import search_door
from memory_gateway.gateway.memories.service import Memories, MemoryRules
from memory_gateway.gateway.metrics import Metrics
from memory_gateway.gateway.resources import routes as resources_routes
from memory_gateway.gateway.resources.service import Resources
from memory_gateway.kit.clock import epoch_ms, system_clock
from memory_gateway.kit.errors import MemoryGatewayError, StorageUnavailable
from memory_gateway.kit.ids import uuid7_id
from memory_gateway.memory_service.app import build_service_app
from memory_gateway.memory_service.entries.service import Entries
from memory_gateway.memory_service.thinking.service import Thinking
from memory_gateway.settings import Settings, SettingsError
from memory_gateway.storage.choose import FILE_NAME, open_database
from memory_gateway.storage.leases import Leases
from memory_gateway.storage.migrate import UnknownMigration, migrate
from memory_gateway.storage.port import Database, DatabaseFault
from memory_gateway.upstream.each_once import EachOnce
from memory_gateway.upstream.embedded import EmbeddedUpstream, open_engine
from memory_gateway.upstream.everos import EverosUpstream
from memory_gateway.upstream.outbox import Outbox
from memory_gateway.upstream.port import Upstream

ADMIN_KEY_FILE = "admin.key"
KEY_SECRET_FILE = "key.secret"  # noqa: S105 - the name of a file
_MAINTENANCE_SECONDS = 300.0
_SERVICE_BODY_BYTES = 8 << 20  # a stated fact is a few sentences

Face = Literal["gateway", "service"]
FACES: tuple[Face, ...] = ("gateway", "service")

_logger = logging.getLogger(__name__)


class Facts(Struct, frozen=True):
    """The Memory-Service's rooms."""

    entries: Entries
    thinking: Thinking


class Rooms(Struct, frozen=True):
    """The gateway's services, open and connected."""

    database: Database
    upstream: Upstream
    blobs: BlobStore
    accounts: Accounts
    attachments: Attachments
    resources: Resources
    memories: Memories
    user_export: UserExport
    user_erasure: UserErasure


@asynccontextmanager
async def open_storage(settings: Settings) -> AsyncIterator[Database]:
    """The migrated database. `SettingsError` where the data folder, or the database, cannot be used."""
    with _faults_of(settings):
        database = open_database(settings)
    try:
        with _faults_of(settings):
            await migrate(database, system_clock)
        yield database
    finally:
        await database.close()


@contextmanager
def _faults_of(settings: Settings) -> Iterator[None]:
    data_dir = settings.data_dir.resolve()
    try:
        yield
    except FileExistsError as error:
        raise SettingsError(f"data_dir: {data_dir} is not a folder") from error
    except OSError as error:
        raise SettingsError(f"data_dir: {data_dir} cannot be used: {error.strerror}") from error
    except ImportError as error:
        raise SettingsError("database_url needs: pip install 'memory-gateway[postgres]'") from error
    except (StorageUnavailable, DatabaseFault, UnknownMigration) as error:
        reason = error.__cause__ or error
        if settings.database_url is not None:  # which may hold a password, so it is not repeated
            raise SettingsError(f"database_url: the database cannot be used: {reason}") from error
        raise SettingsError(f"data_dir: the database {data_dir / FILE_NAME} cannot be used: {reason}") from error


@asynccontextmanager
async def open_accounts(settings: Settings) -> AsyncIterator[Accounts]:
    """The accounts alone, for the command line. `SettingsError` where there is no data yet: a typing error, mostly."""
    if settings.database_url is None and not (settings.data_dir / FILE_NAME).exists():
        raise SettingsError(f"{settings.data_dir.resolve()} holds no data; start the server once, or name the data_dir")
    async with open_storage(settings) as database:
        yield Accounts(database, system_clock, key_secret(settings))


def key_secret(settings: Settings) -> bytes:
    """What user keys are hashed with: from the settings, else from a file made at the first start."""
    if settings.key_secret is not None:
        return settings.key_secret.encode()
    return load_or_create_secret(settings.data_dir / KEY_SECRET_FILE)


def admin_key(settings: Settings) -> bytes:
    """What creates users: from the settings, else from a file made at the first start."""
    if settings.admin_key is not None:
        return settings.admin_key.encode()
    path = settings.data_dir / ADMIN_KEY_FILE
    if not path.exists():
        _logger.warning("the admin key was made and written to %s", path)
    return load_or_create_secret(path)


@asynccontextmanager
async def open_facts(settings: Settings, database: Database, *, at_work: bool) -> AsyncIterator[Facts]:
    """The Memory-Service's rooms; ``at_work`` with their background work, where their face is served."""
    entries = Entries(database, system_clock, uuid7_id, decay_daily=settings.decay_daily)
    if at_work:
        entries.start()
    try:
        yield Facts(entries, Thinking(database, system_clock))
    finally:
        await entries.close()


def stated_facts_of(entries: Entries) -> StatedFacts:
    """What the engine makes profiles of."""

    async def stated_facts(user_id: str) -> list[StatedFact]:
        return [
            StatedFact(entry.content, entry.category, entry.source, epoch_ms(entry.updated_at))
            for entry in await entries.stated_facts(user_id)
        ]

    return stated_facts


@asynccontextmanager
async def open_upstream(
    settings: Settings, database: Database, stated_facts: StatedFacts = no_stated_facts
) -> AsyncIterator[Upstream]:
    """The memory system that the settings ask for, at work until the end."""
    if settings.upstream == "everos":
        everos = EverosUpstream(
            settings.upstream_url,
            prefix=settings.upstream_prefix,
            timeout=settings.upstream_timeout,
            shares_files=settings.upstream_shares_files,
        )
        each_once = EachOnce(everos, database, system_clock)
        try:
            if not settings.outbox:
                yield each_once
                return
            leases = Leases(database, system_clock, process_name())
            async with Outbox(each_once, database, system_clock, uuid7_id, leases) as outbox:
                yield outbox
        finally:
            await everos.close()
        return
    embedder = choose_embedder(settings)
    try:
        async with open_engine(
            settings, database, embedder, holder=process_name(), stated_facts=stated_facts
        ) as engine:
            engine.start()
            yield EmbeddedUpstream(engine, settings)
    finally:
        if embedder is not None:
            await embedder.close()


@asynccontextmanager
async def open_rooms(settings: Settings, database: Database, facts: Facts) -> AsyncIterator[Rooms]:
    """Everything behind the gateway's face, its start-up work done and its upkeep running."""
    async with AsyncExitStack() as stack:
        stated_facts = stated_facts_of(facts.entries)
        upstream = await stack.enter_async_context(open_upstream(settings, database, stated_facts))
        rooms = build_rooms(settings, database, upstream, facts)
        stack.push_async_callback(rooms.attachments.close)
        stack.push_async_callback(rooms.resources.close)
        stack.push_async_callback(rooms.memories.close)
        await rooms.attachments.backfill()
        rooms.resources.resume()
        upkeep = asyncio.create_task(_keep_up(rooms), name="upkeep")
        stack.push_async_callback(_cancel, upkeep)
        yield rooms


def build_rooms(settings: Settings, database: Database, upstream: Upstream, facts: Facts) -> Rooms:
    """The gateway's services over a database and an upstream."""
    temporary_root = settings.data_dir / TEMPORARY_FOLDER
    temporary_root.mkdir(mode=0o700, parents=True, exist_ok=True)
    blobs = open_blobs(settings)
    accounts = Accounts(database, system_clock, key_secret(settings))
    audit = Audit(database, system_clock)
    attachments = Attachments(database, system_clock, uuid7_id, blobs)
    resources = Resources(
        database,
        system_clock,
        uuid7_id,
        blobs=blobs,
        attachments=attachments,
        audit=audit,
        upstream=upstream,
        leases=Leases(database, system_clock, process_name()),
        max_upload_bytes=settings.max_upload_bytes,
        inline_index_bytes=settings.inline_index_bytes,
        extraction_timeout=settings.extraction_timeout,
    )
    memories = Memories(
        database=database,
        clock=system_clock,
        new_id=uuid7_id,
        upstream=upstream,
        accounts=accounts,
        attachments=attachments,
        resources=resources,
        audit=audit,
        rules=_memory_rules(settings),
    )
    holders = (attachments, resources, memories, facts.entries, facts.thinking)
    return Rooms(
        database=database,
        upstream=upstream,
        blobs=blobs,
        accounts=accounts,
        attachments=attachments,
        resources=resources,
        memories=memories,
        user_export=UserExport(audit, (accounts, *holders), upstream, blobs, temporary_root),
        user_erasure=UserErasure(database, system_clock, holders, upstream, blobs),
    )


def _memory_rules(settings: Settings) -> MemoryRules:
    return MemoryRules(
        data_dir=settings.data_dir,
        allowed_file_roots=settings.allowed_file_roots,
        allowed_uri_hosts=settings.allowed_uri_hosts,
        allow_other_senders=settings.allow_other_senders,
        shared_agents=settings.shared_agents,
        resource_batch=settings.resource_batch,
        has_others=_has_others(settings),
    )


def build_gateway(settings: Settings, rooms: Rooms) -> Litestar:
    """The gateway's HTTP face."""
    metrics = Metrics()
    metrics.gauge("vector_backlog", "Turns without a vector yet.", lambda: _backlog(rooms.upstream))
    metrics.gauge(
        "reindexed_ratio",
        "Share of the turns that have a vector of the embedding model, while it changes; else 1.",
        lambda: _reindexed(rooms.upstream),
    )
    return build_app(
        accounts=rooms.accounts,
        user_export=rooms.user_export,
        user_erasure=rooms.user_erasure,
        health=Health(rooms.database, rooms.upstream, free_bytes_of(settings.data_dir), rooms.blobs),
        metrics=metrics,
        admin_key=admin_key(settings),
        max_body_bytes=settings.max_body_bytes,
        rate_limit=settings.rate_limit,
        auth_failure_limit=settings.auth_failure_limit,
        share_limits=partial(SharedLimits, rooms.database, system_clock) if _has_others(settings) else None,
        route_handlers=[*resources_routes.ROUTES, *memories_routes.ROUTES],
        services={"resources": rooms.resources, "memories": rooms.memories},
        doors=[search_door(rooms.memories, settings.max_body_bytes)],
    )


def build_service(settings: Settings, database: Database, facts: Facts) -> Litestar:
    """The Memory-Service's HTTP face."""
    return build_service_app(
        entries=facts.entries,
        thinking=facts.thinking,
        database=database,
        host=settings.host,
        service_token=settings.service_token,
        max_body_bytes=min(settings.max_body_bytes, _SERVICE_BODY_BYTES),
    )


def _has_others(settings: Settings) -> bool:
    """Whether other processes may serve the same users."""
    return settings.workers > 1 or settings.database_url is not None


def process_name() -> str:
    """Names this process in leases; never the same twice."""
    return f"{os.getpid()}:{uuid7_id()}"


async def _backlog(upstream: Upstream) -> float | None:
    return (await upstream.health()).backlog


async def _reindexed(upstream: Upstream) -> float:
    progress = (await upstream.health()).details.get("reindexing")
    return progress["done"] / progress["of"] if progress else 1.0


async def _keep_up(rooms: Rooms) -> None:
    """What interrupted work, old keys and erasures left behind is cleared now and then, each by itself."""
    while True:
        for clear in (rooms.attachments.sweep, rooms.memories.sweep, rooms.user_erasure.resume_erasures):
            try:
                await clear()
            except MemoryGatewayError as error:
                _logger.warning("upkeep paused: %s", error.message)
            except Exception:
                _logger.exception("upkeep failed; it goes on")
        await asyncio.sleep(_MAINTENANCE_SECONDS)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


@asynccontextmanager
async def open_faces(settings: Settings, faces: Sequence[Face]) -> AsyncIterator[list[Litestar]]:
    """The apps of the faces, in their order, over rooms that they share."""
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_storage(settings))
        facts = await stack.enter_async_context(open_facts(settings, database, at_work="service" in faces))
        apps: list[Litestar] = []
        for face in faces:
            if face == "gateway":
                rooms = await stack.enter_async_context(open_rooms(settings, database, facts))
                apps.append(build_gateway(settings, rooms))
            else:
                apps.append(build_service(settings, database, facts))
        yield apps
