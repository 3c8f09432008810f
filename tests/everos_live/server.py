"""A real EverOS 1.5.1 as a child process, with a model stand-in and this project's embedding model behind it."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from benchmarks import embedding_server
from memory_gateway.demo.child import ServerDied
from memory_gateway.embeddings.local_model import DIMENSIONS
from tests.everos_live import install
from tests.everos_live.ledgers import unfinished
from tests.everos_live.stand_in import StandIn, standing_in

# Bounds for a machine that does other things too; nothing waits for them to pass.
_START_SECONDS = 300.0
_STOP_SECONDS = 60.0
_SETTLE_SECONDS = 240.0
_CALM = 2  # looks in a row: a run that is being started stands nowhere for a moment
_LOOK_SECONDS = 0.1
_LOG_CHARACTERS = 4000
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


class EverosServer:
    """``model`` is what it takes for a language model. ``root`` holds its markdown files and its index."""

    def __init__(self, folder: Path, model: StandIn, embeddings_url: str) -> None:
        self.root = folder / "root"
        self.log = folder / "everos.log"
        self.model = model
        self.port, self._held = _held_port()
        self._environ = _environment(folder, model.url, embeddings_url)
        self._process: subprocess.Popen[bytes] | None = None
        self._run_to_end("init", "--root", str(self.root))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "EverOS does not run"
        return self._process.pid

    def start(self) -> None:
        """Returns when it answers. Raises `ServerDied`."""
        command = [str(install.command()), "server", "start", "--root", str(self.root)]
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [*command, "--host", "127.0.0.1", "--port", str(self.port)],
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._wait(self._process)

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def kill(self) -> None:
        """Settle before: an extraction that this stops would pass for one that runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def index_words(self) -> None:
        """Have keyword search find everything. A new root takes a minute for that, a start does it at once."""
        self.settle()
        self.stop()
        self.start()
        self.settle()

    def health(self) -> dict[str, Any]:
        reply: dict[str, Any] = httpx.get(f"{self.url}/health", timeout=120, trust_env=False).raise_for_status().json()
        return reply

    def settle(self) -> None:
        """Wait until everything that was added is extracted, and everything that was extracted is in the index."""
        deadline, calm = time.monotonic() + _SETTLE_SECONDS, 0
        while True:
            self.health()  # one turn of its event loop, however slow that is now
            left = unfinished(self.root)
            calm = 0 if left else calm + 1
            if calm == _CALM:
                return
            assert time.monotonic() < deadline, f"EverOS is not done: {left}"
            time.sleep(_LOOK_SECONDS)

    def close(self) -> None:
        self.stop()
        self._held.close()

    def log_end(self) -> str:
        return _ESCAPES.sub("", self.log.read_text("utf-8", "replace"))[-_LOG_CHARACTERS:]

    def _run_to_end(self, *arguments: str) -> None:
        command = [str(install.command()), *arguments]
        done = subprocess.run(command, env=self._environ, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise ServerDied(f"everos {arguments[0]} failed:\n{done.stdout}{done.stderr}")

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            try:
                self.health()
            except httpx.HTTPError:
                time.sleep(0.1)
            else:
                return
        raise ServerDied(f"EverOS did not start; the end of its log:\n{self.log_end()}")


@contextmanager
def running_everos(folder: Path, embedding_model: Path, questions: Iterable[str] = ()) -> Iterator[EverosServer]:
    """Started on an empty root in ``folder``, with its log there; stopped at the end. It must be installed.

    ``questions``: texts that are embedded as questions when asked for, all others as passages.
    """
    with standing_in() as model, embedding_server.serving(embedding_model, questions) as embeddings_url:
        server = EverosServer(folder, model, embeddings_url)
        try:
            server.start()
            yield server
        finally:
            server.close()


def _held_port() -> tuple[int, socket.socket]:
    """A port that nobody else is given while the socket is open, also while the server is away.

    Linux lets a server listen where a socket is bound that does not; elsewhere the port is only free now.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    port: int = held.getsockname()[1]
    if sys.platform != "linux":
        held.close()
    return port, held


def _environment(folder: Path, models_url: str, embeddings_url: str) -> dict[str, str]:
    """Nothing of the caller's EverOS, nothing of its home folder, no proxy on the way to loopback."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("EVEROS_", "PYTHON"))}
    return {
        **inherited,
        **_provider("LLM", models_url),
        **_provider("MULTIMODAL", models_url),
        **_provider("RERANK", models_url),
        **_provider("EMBEDDING", embeddings_url),
        "EVEROS_RERANK__PROVIDER": "vllm",
        "EVEROS_EMBEDDING__DIM": str(DIMENSIONS),
        "TIKTOKEN_CACHE_DIR": str(install.tokenizers()),
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "NO_PROXY": "127.0.0.1",
        "OMP_NUM_THREADS": "1",
    }


def _provider(name: str, url: str) -> Mapping[str, str]:
    settings = {"MODEL": "stand-in", "API_KEY": "none", "BASE_URL": url}
    return {f"EVEROS_{name}__{key}": value for key, value in settings.items()}
