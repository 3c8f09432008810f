"""This project's local embedding model behind an OpenAI-compatible server on loopback: one model for all."""

import contextlib
import threading
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec

from memory_gateway.embeddings.port import Vectors


class _Asked(msgspec.Struct):
    input: str | list[str]


@contextlib.contextmanager
def serving(model: Path, questions: Iterable[str]) -> Iterator[str]:
    """The base URL of the API, for as long as the context lasts.

    The API does not say whether a text is a question, which the model wants to know; so it is told beforehand.
    """
    embedder = _SharedEmbedder(model, questions)

    class Handler(_Handler):
        model = embedder

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()


class _SharedEmbedder:
    """The model with every vector it has made: each text costs once, whichever system asks first."""

    def __init__(self, model: Path, questions: Iterable[str]) -> None:
        from memory_gateway.embeddings.onnx_model import OnnxModel  # noqa: PLC0415 - its packages may be missing

        self._model = OnnxModel(model)
        self._questions = frozenset(map(_plain, questions))
        self._made: dict[str, Vectors] = {}
        self._lock = threading.Lock()

    def vector(self, text: str) -> Vectors:
        plain = _plain(text)
        with self._lock:
            if plain not in self._made:
                encode = self._model.query if plain in self._questions else self._model.passage
                self._made[plain] = encode(plain)
            return self._made[plain]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    model: _SharedEmbedder

    def do_POST(self) -> None:
        asked = msgspec.json.decode(self.rfile.read(int(self.headers["Content-Length"])), type=_Asked)
        texts = [asked.input] if isinstance(asked.input, str) else asked.input
        items = [
            {"object": "embedding", "index": index, "embedding": self.model.vector(text).tolist()}
            for index, text in enumerate(texts)
        ]
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        body = msgspec.json.encode({"object": "list", "model": "local", "data": items, "usage": usage})
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Nothing: a line a request would bury the table."""


def _plain(text: str) -> str:
    """Peers trim and join lines before they ask."""
    return " ".join(text.split())
