"""Apps to sockets: check what every process will open, say where the server listens, serve until told to stop."""

import asyncio
import logging
import socket
from collections.abc import Sequence

from memory_gateway.blobs.choose import check_blobs
from memory_gateway.kit.http_request_id import RequestIdFilter
from memory_gateway.kit.serving import listen, new_event_loop, run_workers, serve_apps
from memory_gateway.memory_service.access import Access
from memory_gateway.server import FACES, Face, admin_key, key_secret, open_faces, open_storage
from memory_gateway.settings import Settings, SettingsError

_NAMES: dict[Face, str] = {"gateway": "Memory Gateway", "service": "Memory-Service"}


async def _serve(settings: Settings, listeners: list[tuple[Face, socket.socket]]) -> None:
    async with open_faces(settings, [face for face, _ in listeners]) as apps:
        await serve_apps(
            list(zip(apps, [listener for _, listener in listeners], strict=True)), settings.trusted_proxies
        )


def _log_to_stderr(settings: Settings) -> None:
    handler = logging.StreamHandler()
    handler.addFilter(RequestIdFilter())
    line = "%(asctime)s %(levelname)s %(name)s [%(request_id)s]: %(message)s"
    logging.basicConfig(level=settings.log_level.upper(), format=line, handlers=[handler])
    logging.getLogger("uvicorn").setLevel(logging.WARNING)  # says for each face what `serve` has said


def _run(settings: Settings, listeners: list[tuple[Face, socket.socket]]) -> None:
    _log_to_stderr(settings)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(_serve(settings, listeners))


def _listener(settings: Settings, face: Face) -> socket.socket:
    port = settings.gateway_port if face == "gateway" else settings.service_port
    try:
        return listen(settings.host, port)
    except OSError as error:
        raise SettingsError(f"{face}_port: {error}") from error


async def _look_at_data(settings: Settings, faces: Sequence[Face]) -> None:
    """Open what every worker will open; the schema is up to date and the secrets are made when this returns."""
    async with open_storage(settings):
        if "gateway" in faces:
            await check_blobs(settings)
            key_secret(settings)
            admin_key(settings)


def serve(settings: Settings, faces: Sequence[Face] = FACES) -> None:
    """Serve until SIGTERM or SIGINT; requests in flight are finished.

    What cannot be used raises `SettingsError` before anybody is told that the server is up.
    """
    _log_to_stderr(settings)
    if "service" in faces:
        Access(settings.host, settings.service_token)
    listeners = [(face, _listener(settings, face)) for face in faces]
    asyncio.run(_look_at_data(settings, faces))
    for face, listener in listeners:
        host, port = listener.getsockname()[:2]
        print(f"{_NAMES[face]} on http://{host}:{port}", flush=True)  # noqa: T201 - what a person waits for
    print(f"data in {settings.data_dir.resolve()}", flush=True)  # noqa: T201
    if settings.workers == 1:
        _run(settings, listeners)
    else:
        run_workers(settings.workers, _run, (settings, listeners))
