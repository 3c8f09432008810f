"""Stands in for the models that EverOS calls: a chat model and a reranker behind OpenAI's API, on loopback."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec

from tests.everos_live.replies import overlap, reply_to


class StandIn:
    """``fault``: the status that every chat is refused with, for as long as it is set."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.fault: int | None = None
        self.unforeseen: list[str] = []

    def answer(self, path: str, asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if path.endswith("/rerank"):
            return 200, _ranked(asked)
        if self.fault is not None:
            return self.fault, {"error": {"message": "the model is away"}}
        try:
            return 200, _completion(asked)
        except LookupError as error:
            self.unforeseen.append(str(error))
            return 500, {"error": {"message": str(error)}}


@contextmanager
def standing_in() -> Iterator[StandIn]:
    """For as long as the context lasts."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        _Handler.stand_in = stand_in = StandIn(f"http://127.0.0.1:{server.server_port}/v1")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield stand_in
        finally:
            server.shutdown()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    stand_in: StandIn

    def do_POST(self) -> None:
        asked = msgspec.json.decode(self.rfile.read(int(self.headers["Content-Length"])))
        status, reply = self.stand_in.answer(self.path, asked)
        body = msgspec.json.encode(reply)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Nothing: what went wrong stands in EverOS's own log."""


def _completion(asked: dict[str, Any]) -> dict[str, Any]:
    text = reply_to("\n".join(_text(message.get("content")) for message in asked["messages"]))
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    model = asked.get("model")
    return {"id": "1", "object": "chat.completion", "created": 1, "model": model, "choices": [choice], "usage": usage}


def _text(content: str | list[dict[str, Any]] | None) -> str:
    if isinstance(content, list):
        return "\n".join(part["text"] if part["type"] == "text" else f"<<{part['type']}>>" for part in content)
    return content or ""


def _ranked(asked: dict[str, Any]) -> dict[str, Any]:
    scores = [overlap(asked["query"], document) for document in asked["documents"]]
    results = [{"index": index, "relevance_score": score} for index, score in enumerate(scores)]
    return {"results": sorted(results, key=lambda result: -scores[int(result["index"])])}
