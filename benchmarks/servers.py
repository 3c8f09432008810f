"""The servers that are measured, each its own process: the gateway as users start it, and any other ASGI program."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import httpx
import psutil
from msgspec import Struct

from memory_gateway.demo.child import RunningServer, ServerDied, free_port, running_server

CACHE = Path(__file__).parent / ".cache"
ADMIN_KEY = "benchmark-admin-key"
Gateway = RunningServer


class User(Struct, frozen=True):
    """A registered user and the headers that prove it."""

    user_id: str
    user_key: str

    @property
    def headers(self) -> dict[str, str]:
        return {"X-User-ID": self.user_id, "X-User-Key": self.user_key}


@contextmanager
def work_folder() -> Iterator[Path]:
    """A temporary folder on the disk of this project: the system's may be in memory, where an fsync is free."""
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        yield Path(folder)


@contextmanager
def gateway(folder: Path | None = None, **settings: str) -> Iterator[Gateway]:
    """The gateway on ``folder``, or on a temporary one; without an embedding model unless the settings say so."""
    chosen = {"embedder": "none", "log_level": "warning", **settings}
    if folder is not None:
        with running_server(folder, ADMIN_KEY, **chosen) as server:
            yield server
    else:
        with work_folder() as temporary, running_server(temporary, ADMIN_KEY, **chosen) as server:
            yield server


def create_user(server: Gateway, user_id: str) -> User:
    reply = httpx.post(
        f"{server.url}/users", headers={"X-Admin-Key": ADMIN_KEY}, json={"user_id": user_id}, trust_env=False
    )
    reply.raise_for_status()
    return User(user_id, reply.json()["user_key"])


class Process(Protocol):
    """What runs under a process id."""

    @property
    def pid(self) -> int: ...


def resident_bytes(server: Process) -> int:
    """Memory that the server holds, its children included."""
    process = psutil.Process(server.pid)
    return sum(member.memory_info().rss for member in (process, *process.children(recursive=True)))


@contextmanager
def asgi(app: str, health_path: str, **environ: str) -> Iterator[int]:
    """Another ASGI program under uvicorn with the same loop and parser; yields its port."""
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", app, "--port", str(port), "--loop", "uvloop", "--http", "httptools"]
    process = subprocess.Popen(
        [*command, "--log-level", "warning", "--no-access-log"], cwd=CACHE.parent.parent, env=os.environ | environ
    )
    try:
        _wait(process, f"http://127.0.0.1:{port}{health_path}")
        yield port
    finally:
        process.terminate()
        process.wait()


def _wait(process: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        try:
            httpx.get(url, trust_env=False)
        except httpx.TransportError:
            time.sleep(0.05)
        else:
            return
    raise ServerDied(f"{url} does not answer")
