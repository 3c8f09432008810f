"""Conversations into a running server, then their questions, as any client would: one request after the other."""

import importlib.util
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import httpx
import msgspec
from msgspec import Struct, field

from benchmarks.recall.conversations import Conversation, Message, Question, token_estimate, unit_tokens
from benchmarks.recall.metrics import Answer, verdict
from benchmarks.recall.ranking import Origins, Reply, ranked_units
from benchmarks.report import Skipped
from benchmarks.servers import CACHE, Gateway, User, create_user, gateway, resident_bytes, work_folder
from memory_gateway.embeddings import local_model

BATCH = 20
TOP_K = 50
_STALLED_SECONDS = 300
_TIMEOUT_SECONDS = 60
_TEN = 10

Settings = Mapping[str, str]


class Added(Struct):
    """How long it took. ``full_batches``: the requests with twenty messages; without a model nothing is embedded."""

    messages: int = 0
    seconds: float = 0.0
    full_batches: int = 0
    full_batch_seconds: float = 0.0
    seconds_until_embedded: float | None = None

    def note(self, messages: int, seconds: float) -> None:
        self.messages += messages
        self.seconds += seconds
        if messages == BATCH:
            self.full_batches += 1
            self.full_batch_seconds += seconds


class Measured(Struct):
    """``resident_bytes``: of the server and its children, when the work of that name was done."""

    added: Added
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    resident_bytes: dict[str, int] = field(default_factory=dict)


def server_settings(embedder: str) -> Settings:
    """Two people speak in a chat that one user owns, so others' sender ids are allowed.

    The local model is built once for all runs. Raises `Skipped` where it cannot be.
    """
    settings = {"embedder": embedder, "allow_other_senders": "true"}
    if embedder != "local":
        return settings
    missing = [name for name in local_model.PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise Skipped(f"{missing[0]} is not installed; make setup installs it, --embedder none does without")
    return settings | {"embedder_model": str(local_model.ensure_built(CACHE / "models"))}


def measure(conversations: Sequence[Conversation], methods: Sequence[str], settings: Settings) -> Measured:
    """Each method meets a freshly started server on the same data: no query's vector is known from another method."""
    with work_folder() as folder:
        with _warm_server(folder, settings) as server:
            users = {each.user_id: create_user(server, each.user_id) for each in conversations}
            measured = Measured(_add_all(server, conversations, users))
            measured.resident_bytes["adding"] = resident_bytes(server)
        for method in methods:
            with _warm_server(folder, settings) as server:
                started = time.perf_counter()
                measured.answers[method] = [
                    answer for each in conversations for answer in _ask_all(server, each, users[each.user_id], method)
                ]
                measured.resident_bytes[method] = resident_bytes(server)
            asked = len(measured.answers[method])
            print(f"  {method}: {asked:,} questions in {time.perf_counter() - started:.0f} s", flush=True)
    return measured


@contextmanager
def _warm_server(folder: Path, settings: Settings) -> Iterator[Gateway]:
    """A server that has its model loaded: a search by vectors waits for that."""
    with gateway(folder, **settings) as server:
        if settings["embedder"] != "none":
            user = create_user(server, f"warm-up-{time.time_ns()}")
            with _client(server, user) as client:
                _post(client, "/memories/search", {"query": "Are you ready?", "method": "vector"})
        yield server


def _client(server: Gateway, user: User) -> httpx.Client:
    return httpx.Client(base_url=server.url, headers=user.headers, timeout=_TIMEOUT_SECONDS, trust_env=False)


def _add_all(server: Gateway, conversations: Sequence[Conversation], users: Mapping[str, User]) -> Added:
    added, started = Added(), time.perf_counter()
    for conversation in conversations:
        with _client(server, users[conversation.user_id]) as client:
            for session_id, messages in groupby(conversation.messages, key=lambda message: message.session_id):
                _add_session(client, session_id, list(messages), added)
    print(f"  {added.messages:,} messages added in {time.perf_counter() - started:.0f} s", flush=True)
    if _wait_until_embedded(server):
        added.seconds_until_embedded = time.perf_counter() - started
        print(f"  embedded after {added.seconds_until_embedded:.0f} s", flush=True)
    return added


def _add_session(client: httpx.Client, session_id: str, messages: list[Message], added: Added) -> None:
    for start in range(0, len(messages), BATCH):
        batch = messages[start : start + BATCH]
        body = {"session_id": session_id, "messages": [_wire(message) for message in batch]}
        _, seconds = _post(client, "/memories/add", body)
        added.note(len(batch), seconds)
    _post(client, "/memories/flush", {"session_id": session_id})


def _wire(message: Message) -> dict[str, Any]:
    return {
        "role": message.role,
        "sender_id": message.sender_id,
        "sender_name": message.sender_name,
        "timestamp": message.timestamp,
        "content": message.text,
    }


def _wait_until_embedded(server: Gateway) -> bool:
    """False where there is no model. Raises `AssertionError` when no vector is made for minutes."""
    left, since = -1, time.monotonic()
    while True:
        health = httpx.get(f"{server.url}/health", trust_env=False).raise_for_status().json()
        if not health["capabilities"]["vector"]:
            return False
        if (backlog := health["upstream"]["backlog"]) == 0:
            return True
        if backlog != left:
            left, since = backlog, time.monotonic()
        elif time.monotonic() > since + _STALLED_SECONDS:
            raise AssertionError(f"no vector was made for {_STALLED_SECONDS} s, {backlog} are missing")
        time.sleep(0.2)


def _ask_all(server: Gateway, conversation: Conversation, user: User, method: str) -> Iterator[Answer]:
    origins = Origins(conversation)
    session_of = {message.unit: message.session_id for message in conversation.messages}
    tokens = unit_tokens(conversation.messages)
    with _client(server, user) as client:
        for question in conversation.questions:
            reply, seconds = _search(client, question, method)
            ranking = ranked_units(reply.results, origins)
            yield Answer(
                user_id=conversation.user_id,
                part=conversation.part,
                method=method,
                question=question,
                verdict=verdict(ranking, question.evidence, session_of, tokens),
                reply_tokens=sum(token_estimate(result.text) for result in reply.results),
                ten_tokens=sum(tokens[unit] for unit in ranking[:_TEN]),
                milliseconds=1000 * seconds,
            )


def _search(client: httpx.Client, question: Question, method: str) -> tuple[Reply, float]:
    body = {
        "query": question.text,
        "scope": "all_user_memory",
        "method": method,
        "top_k": TOP_K,
        "include_profile": False,
    }
    content, seconds = _post(client, "/memories/search", body)
    return msgspec.json.decode(content, type=Reply), seconds


def _post(client: httpx.Client, path: str, body: dict[str, Any]) -> tuple[bytes, float]:
    """The reply's body, and seconds until all of it was there."""
    started = time.perf_counter()
    reply = client.post(path, json=body)
    seconds = time.perf_counter() - started
    if reply.is_error:
        raise AssertionError(f"{path} answered {reply.status_code}: {reply.text[:500]}")
    return reply.content, seconds
