"""A real server as a child process, on a free port and its own data folder."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from msgspec import Struct

from memory_gateway.settings import ENV_PREFIX

_START_SECONDS = 60.0
_STOP_SECONDS = 15.0


class ServerDied(Exception):
    """The server ended, or did not answer in time; the message holds the end of its log."""


class RunningServer(Struct, frozen=True):
    """Where the server's two faces listen; ``log`` is the file that it writes to."""

    port: int
    service_port: int
    pid: int
    admin_key: str
    log: Path

    @property
    def url(self) -> str:
        """The Memory Gateway."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def service_url(self) -> str:
        """The Memory-Service."""
        return f"http://127.0.0.1:{self.service_port}"


@contextmanager
def running_server(folder: Path, admin_key: str, **settings: str) -> Iterator[RunningServer]:
    """Start ``memory-gateway serve`` on ``folder / "data"``, wait until it answers, stop it at the end.

    ``settings`` go to the server by its environment; those of the caller's environment do not reach it.
    """
    port, service_port, log = free_port(), free_port(), folder / "server.log"
    chosen = {
        "data_dir": str(folder / "data"),
        "gateway_port": str(port),
        "service_port": str(service_port),
        "admin_key": admin_key,
        **settings,
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "memory_gateway.cli", "serve"],
            cwd=folder,
            env=_environment(chosen),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    server = RunningServer(port, service_port, process.pid, admin_key, log)
    try:
        _wait_until_it_answers(process, server)
        yield server
    finally:
        _stop(process)


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _environment(settings: dict[str, str]) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(ENV_PREFIX)}
    return inherited | {ENV_PREFIX + name.upper(): value for name, value in settings.items()}


def _wait_until_it_answers(process: subprocess.Popen[bytes], server: RunningServer) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            httpx.get(f"{server.url}/health", timeout=5, trust_env=False)
        except httpx.TransportError:
            time.sleep(0.02)
        else:
            return
    raise ServerDied(f"the server did not start; the end of its log:\n{server.log.read_text('utf-8')[-2000:]}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
