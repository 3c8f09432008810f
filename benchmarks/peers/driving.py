"""What a driver needs inside a peer's own environment: the standard library alone, nothing of this project.

A driver reads a `Request` as JSON from its standard input and writes one line a conversation, `Found` as
JSON. What the peer itself prints goes to the standard error.
"""

import json
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from typing import Protocol, TypedDict

MODEL = "local"


class Conversation(TypedDict):
    """Texts only: a driver never sees the evidence."""

    turns: list[str]
    questions: list[str]


class Request(TypedDict):
    """``folder`` is the driver's own, at first empty; ``stop_words`` for peers that fetch such a list from a hub."""

    folder: str
    embeddings_url: str
    dimensions: int
    most_turns: int
    keywords: bool
    stop_words: list[str]
    conversations: list[Conversation]


class Found(TypedDict):
    """Of one conversation: a ranking of turns a question, and the seconds that adding and searching took."""

    add_seconds: float
    search_seconds: float
    rankings: list[list[int]]


class Store(Protocol):
    """One peer holding the turns of one conversation."""

    def add(self, turns: Sequence[str]) -> None: ...

    def search(self, question: str, most: int) -> list[int]: ...


def drive(open_store: Callable[[Request, int], Store]) -> None:
    """Answer the request. ``open_store`` makes an empty store for the conversation of that number."""
    replies, sys.stdout = sys.stdout, sys.stderr
    request: Request = json.load(sys.stdin)
    for number, conversation in enumerate(request["conversations"]):
        store = open_store(request, number)
        started = time.perf_counter()
        store.add(conversation["turns"])
        added = time.perf_counter()
        rankings = [store.search(question, request["most_turns"]) for question in conversation["questions"]]
        searched = time.perf_counter()
        reply: Found = {"add_seconds": added - started, "search_seconds": searched - added, "rankings": rankings}
        print(json.dumps(reply), file=replies, flush=True)


def embed(url: str, texts: Sequence[str]) -> list[list[float]]:
    """Vectors from an OpenAI-compatible server, for peers that take a function and speak no HTTP themselves."""
    body = json.dumps({"model": MODEL, "input": list(texts)}).encode()
    asked = urllib.request.Request(f"{url}/embeddings", body, {"Content-Type": "application/json"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked) as reply:
        return [item["embedding"] for item in json.load(reply)["data"]]
