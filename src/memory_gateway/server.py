"""The composition root: settings to rooms, rooms to an app, the app to a socket."""

import asyncio
import contextlib
import logging
import multiprocessing
import os
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager

import uvicorn
from litestar import Litestar
from msgspec import Struct

from memory_gateway.embeddings.choose import choose_embedder
from memory_gateway.gateway.accounts.erasure import UserErasure
from memory_gateway.gateway.accounts.export import UserExport
from memory_gateway.gateway.accounts.secret_files import load_or_create_secret
from memory_gateway.gateway.accounts.service import Accounts
from memory_gateway.gateway.app import build_app
from memory_gateway.gateway.attachments.service import Attachments
from memory_gateway.gateway.audit.service import Audit
from memory_gateway.gateway.health import Health
from memory_gateway.gateway.memories import routes as memories_routes
from memory_gateway.gateway.memories.service import Memories, MemoryRules
from memory_gateway.gateway.metrics import Metrics
from memory_gateway.gateway.resources import routes as resources_routes
from memory_gateway.gateway.resources.service import Resources
from memory_gateway.kit.clock import system_clock
from memory_gateway.kit.errors import MemoryGatewayError
from memory_gateway.kit.ids import uuid7_id
from memory_gateway.settings import Settings
from memory_gateway.storage.choose import open_database
from memory_gateway.storage.leases import Leases
from memory_gateway.storage.migrate import migrate
from memory_gateway.storage.port import Database
from memory_gateway.upstream.embedded import EmbeddedUpstream, open_engine
from memory_gateway.upstream.everos import EverosUpstream
from memory_gateway.upstream.port import Upstream

ADMIN_KEY_FILE = "admin.key"
KEY_SECRET_FILE = "key.secret"  # noqa: S105 - the name of a file
STORAGE_FOLDER = "storage"
TEMPORARY_FOLDER = "tmp"
_MAINTENANCE_SECONDS = 300.0
_WAITING_CONNECTIONS = 2048
_DRAIN_SECONDS = 30

_log = logging.getLogger(__name__)


class Rooms(Struct, frozen=True):
    """The gateway's services, open and connected."""

    database: Database
    upstream: Upstream
    accounts: Accounts
    attachments: Attachments
    resources: Resources
    memories: Memories
    user_export: UserExport
    user_erasure: UserErasure


@asynccontextmanager
async def open_storage(settings: Settings) -> AsyncIterator[Database]:
    """The migrated database."""
    database = open_database(settings)
    try:
        await migrate(database, system_clock)
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def open_accounts(settings: Settings) -> AsyncIterator[Accounts]:
    """The accounts alone, for the command line."""
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
        _log.warning("the admin key was made and written to %s", path)
    return load_or_create_secret(path)


@asynccontextmanager
async def open_upstream(settings: Settings, database: Database) -> AsyncIterator[Upstream]:
    """The memory system that the settings ask for, at work until the end."""
    if settings.upstream == "everos":
        everos = EverosUpstream(
            settings.upstream_url,
            prefix=settings.upstream_prefix,
            timeout=settings.upstream_timeout,
            shares_files=settings.upstream_shares_files,
        )
        try:
            yield everos
        finally:
            await everos.close()
        return
    embedder = choose_embedder(settings)
    try:
        async with open_engine(settings, database, embedder, holder=f"{os.getpid()}:{uuid7_id()}") as engine:
            engine.start()
            yield EmbeddedUpstream(engine, settings)
    finally:
        if embedder is not None:
            await embedder.close()


@asynccontextmanager
async def open_rooms(settings: Settings) -> AsyncIterator[Rooms]:
    """Everything behind the HTTP face, its start-up work done and its upkeep running."""
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_storage(settings))
        upstream = await stack.enter_async_context(open_upstream(settings, database))
        rooms = build_rooms(settings, database, upstream)
        stack.push_async_callback(rooms.attachments.close)
        stack.push_async_callback(rooms.resources.close)
        stack.push_async_callback(rooms.memories.close)
        await rooms.attachments.backfill()
        rooms.resources.resume()
        upkeep = asyncio.create_task(_keep_up(rooms), name="upkeep")
        stack.push_async_callback(_cancel, upkeep)
        yield rooms


def build_rooms(settings: Settings, database: Database, upstream: Upstream) -> Rooms:
    """The gateway's services over a database and an upstream."""
    storage_root, temporary_root = settings.data_dir / STORAGE_FOLDER, settings.data_dir / TEMPORARY_FOLDER
    for folder in (storage_root, temporary_root):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    accounts = Accounts(database, system_clock, key_secret(settings))
    audit = Audit(database, system_clock)
    attachments = Attachments(database, system_clock, uuid7_id, storage_root)
    resources = Resources(
        database,
        system_clock,
        uuid7_id,
        storage_root=storage_root,
        attachments=attachments,
        audit=audit,
        upstream=upstream,
        leases=Leases(database, system_clock, f"{os.getpid()}:{uuid7_id()}"),
        max_upload_bytes=settings.max_upload_bytes,
        inline_index_bytes=settings.inline_index_bytes,
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
        rules=MemoryRules(
            data_dir=settings.data_dir,
            allowed_file_roots=settings.allowed_file_roots,
            allowed_uri_hosts=settings.allowed_uri_hosts,
            allow_other_senders=settings.allow_other_senders,
            shared_agents=settings.shared_agents,
            resource_batch=settings.resource_batch,
        ),
    )
    holders = (attachments, resources, memories)
    return Rooms(
        database=database,
        upstream=upstream,
        accounts=accounts,
        attachments=attachments,
        resources=resources,
        memories=memories,
        user_export=UserExport(audit, (accounts, *holders), upstream, storage_root, temporary_root),
        user_erasure=UserErasure(database, system_clock, holders, upstream, storage_root),
    )


def build_gateway(settings: Settings, rooms: Rooms) -> Litestar:
    """The gateway's HTTP face."""
    metrics = Metrics()
    metrics.gauge("vector_backlog", "Turns without a vector yet.", lambda: _backlog(rooms.upstream))
    return build_app(
        accounts=rooms.accounts,
        user_export=rooms.user_export,
        user_erasure=rooms.user_erasure,
        health=Health(rooms.database, rooms.upstream),
        metrics=metrics,
        admin_key=admin_key(settings),
        max_body_bytes=settings.max_body_bytes,
        rate_limit=settings.rate_limit,
        auth_failure_limit=settings.auth_failure_limit,
        route_handlers=[*resources_routes.ROUTES, *memories_routes.ROUTES],
        services={"resources": rooms.resources, "memories": rooms.memories},
    )


async def _backlog(upstream: Upstream) -> float | None:
    return (await upstream.health()).backlog


async def _keep_up(rooms: Rooms) -> None:
    """What interrupted work and erasures left behind is cleared now and then; a fault waits for the next round."""
    while True:
        try:
            await rooms.attachments.sweep()
            await rooms.user_erasure.resume_erasures()
        except MemoryGatewayError as error:
            _log.warning("upkeep paused: %s", error.message)
        await asyncio.sleep(_MAINTENANCE_SECONDS)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


class _Server(uvicorn.Server):
    """Leaves signals to `_serve`, so that a stop is a clean end and not a death by signal."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _serve(settings: Settings, listener: socket.socket) -> None:
    async with open_rooms(settings) as rooms:
        config = uvicorn.Config(
            build_gateway(settings, rooms),
            access_log=False,
            log_config=None,
            server_header=False,
            timeout_graceful_shutdown=_DRAIN_SECONDS,
        )
        server = _Server(config)
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, _stop, server)
        await server.serve(sockets=[listener])


def _stop(server: uvicorn.Server) -> None:
    server.should_exit = True


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((settings.host, settings.gateway_port))
    listener.listen(_WAITING_CONNECTIONS)
    return listener


def _run_worker(settings: Settings, listener: socket.socket) -> None:
    logging.basicConfig(level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    with asyncio.Runner(loop_factory=_new_loop) as runner:
        runner.run(_serve(settings, listener))


def _new_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where it is installed; it is not to be had on every system."""
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; requests in flight are finished."""
    listener = _listen(settings)
    host, port = listener.getsockname()[:2]
    print(f"Memory Gateway on http://{host}:{port}  (data in {settings.data_dir.resolve()})", flush=True)  # noqa: T201
    if settings.workers == 1:
        _run_worker(settings, listener)
    else:
        _run_workers(settings, listener)


def _run_workers(settings: Settings, listener: socket.socket) -> None:
    """Several processes on one socket and one database; one that dies is started again."""
    spawn = multiprocessing.get_context("spawn")
    stopping = False

    def stop(*_: object) -> None:
        nonlocal stopping
        stopping = True

    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, stop)
    workers = [spawn.Process(target=_run_worker, args=(settings, listener)) for _ in range(settings.workers)]
    for worker in workers:
        worker.start()
    while not stopping:
        for place, worker in enumerate(workers):
            worker.join(0.2)
            if worker.exitcode is not None and not stopping:
                _log.error("a worker ended with code %s and is started again", worker.exitcode)
                workers[place] = spawn.Process(target=_run_worker, args=(settings, listener))
                workers[place].start()
    for worker in workers:
        worker.terminate()
        worker.join()
