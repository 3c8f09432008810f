"""The files under ``deploy/``, as far as they can be tried without a container engine."""

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import msgspec
import pytest

ROOT = Path(__file__).parents[2]
STEPS = (ROOT / "deploy" / "Containerfile").read_text("utf-8").replace("\\\n", "")


@pytest.fixture
def answering() -> Iterator[HTTPServer]:
    """Answers every request with its ``status``."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(self.server.status if self.path == "/health" else 404)  # type: ignore[attr-defined]
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002 - the base class's name

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (503, False), (None, False)])
def test_the_health_check_asks_the_gateway_itself(answering: HTTPServer, status: int | None, healthy: bool) -> None:
    (command,) = re.findall(r"^HEALTHCHECK .*? CMD (\[.*\])$", STEPS, re.MULTILINE)
    _, flag, program = msgspec.json.decode(command, type=list[str])
    answering.status = status  # type: ignore[attr-defined]
    port = str(answering.server_port) if status else "1"
    assert program.count("8093") == 1
    asked = [sys.executable, flag, program.replace("8093", port)]
    environment = {"http_proxy": "http://127.0.0.1:1", "HTTP_PROXY": "http://127.0.0.1:1"}
    assert (subprocess.run(asked, env=environment, check=False, capture_output=True).returncode == 0) is healthy


def test_what_is_copied_is_there() -> None:
    copied = [source for line in re.findall(r"^COPY (?!--)(.*) \S+$", STEPS, re.MULTILINE) for source in line.split()]
    assert copied != []
    assert [source for source in copied if not (ROOT / source).exists()] == []
