"""A real EverOS 1.5.1 as a child process, with a model stand-in and this project's embedding model behind it."""

import os
import re
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from benchmarks import embedding_server
from memory_gateway.demo.child import ServerDied, free_port
from memory_gateway.embeddings.local_model import DIMENSIONS
from tests.everos_live import install
from tests.everos_live.stand_in import StandIn, standing_in

_START_SECONDS = 120.0
_STOP_SECONDS = 15.0
_SETTLE_SECONDS = 120.0
_CALM = 4  # looks in a row: work comes in waves, and between them nothing is pending
_LOOK_SECONDS = 0.2
_LOG_CHARACTERS = 4000
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


class EverosServer:
    """``model`` is what it takes for a language model. ``root`` holds its markdown files and its index."""

    def __init__(self, folder: Path, model: StandIn, embeddings_url: str) -> None:
        self.root = folder / "root"
        self.log = folder / "everos.log"
        self.model = model
        self.port = free_port()
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
        """Nothing that it is at is finished."""
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
        reply: dict[str, Any] = httpx.get(f"{self.url}/health", timeout=30, trust_env=False).raise_for_status().json()
        return reply

    def settle(self) -> None:
        """Wait until everything that was extracted is in the index."""
        deadline, calm = time.monotonic() + _SETTLE_SECONDS, 0
        while calm < _CALM:
            if time.monotonic() > deadline:
                raise AssertionError(f"EverOS is still indexing: {self.health()['cascade']}")
            calm = calm + 1 if self.health()["cascade"]["pending"] == 0 else 0
            time.sleep(_LOOK_SECONDS)

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
            server.stop()


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
