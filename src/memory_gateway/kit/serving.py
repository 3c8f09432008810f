"""Sockets and processes: apps served on one event loop, stopped cleanly, in one process or in several."""

import asyncio
import contextlib
import logging
import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import uvicorn

_WAITING_CONNECTIONS = 2048
_DRAIN_SECONDS = 30
_IDLE_SECONDS = 75  # longer than a load balancer keeps a connection, else it sends into one that is being closed
_LOOK_SECONDS = 0.2
_RESTART_SECONDS = 1.0

_logger = logging.getLogger(__name__)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one. Raises `OSError` with the address in its message."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(_WAITING_CONNECTIONS)
    except OSError as error:
        listener.close()
        raise OSError(f"cannot listen on {host}:{port}: {error.strerror}") from error
    return listener


class _Server(uvicorn.Server):
    """Leaves signals to `serve_apps`, so that a stop is a clean end and not a death by signal."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve_apps(apps: list[tuple[Any, socket.socket]], trusted_proxies: Sequence[str] = ()) -> None:
    """Serve each ASGI app on its socket until SIGTERM or SIGINT; requests in flight are finished.

    Only what ``trusted_proxies`` (addresses and networks) say of a client's address is believed.
    """
    servers = [_Server(_config(app, trusted_proxies)) for app, _ in apps]

    def stop() -> None:
        for server in servers:
            server.should_exit = True

    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop)

    async def serve(server: uvicorn.Server, listener: socket.socket) -> None:
        await server.serve(sockets=[listener])
        stop()  # one that ends by itself takes the others along

    async with asyncio.TaskGroup() as group:
        for server, (_, listener) in zip(servers, apps, strict=True):
            group.create_task(serve(server, listener))


def _config(app: Any, trusted_proxies: Sequence[str]) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        proxy_headers=bool(trusted_proxies),
        forwarded_allow_ips=list(trusted_proxies),
        timeout_keep_alive=_IDLE_SECONDS,
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_graceful_shutdown=_DRAIN_SECONDS,
    )


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where it is installed; it is not to be had on every system."""
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def run_workers(count: int, work: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    """Run the work in so many processes until SIGTERM or SIGINT; one that dies is started again.

    When this process is killed the workers stop too, as on SIGTERM.
    """
    spawn = multiprocessing.get_context("spawn")
    stopping = False

    def stop(*_: object) -> None:
        nonlocal stopping
        stopping = True

    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, stop)
    workers = [spawn.Process(target=_work, args=(work, arguments)) for _ in range(count)]
    for worker in workers:
        worker.start()
    while not stopping:
        time.sleep(_LOOK_SECONDS)
        for place, worker in enumerate(workers):
            if worker.exitcode is not None and not stopping:
                _logger.error("a worker ended with code %s and is started again", worker.exitcode)
                time.sleep(_RESTART_SECONDS)  # one that cannot start must not spin
                workers[place] = spawn.Process(target=_work, args=(work, arguments))
                workers[place].start()
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join()


def _work(work: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    threading.Thread(target=_stop_with_supervisor, name="supervisor-watch", daemon=True).start()
    work(*arguments)


def _stop_with_supervisor() -> None:
    supervisor = multiprocessing.parent_process()
    if supervisor is not None:
        supervisor.join()
        os.kill(os.getpid(), signal.SIGTERM)
