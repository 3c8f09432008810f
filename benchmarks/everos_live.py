"""How does a search compare with one on a real EverOS, and what does the gateway add in front of it?

The embedded engine and EverOS 1.5.1 hold the same 119 messages of LoCoMo, with the same embedding model behind both.
Then the gateway on that EverOS beside EverOS asked directly. Then the gateway alone, on an EverOS that answers at once.
``make everos`` installs EverOS; the last part needs neither it nor LoCoMo.
"""

import base64
import itertools
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import psutil
from msgspec import Struct

from benchmarks.instant_everos import ALL, CONVERSATION, FILES, SHOWN, USER
from benchmarks.load import ROOT, Plan, measure, request_bytes
from benchmarks.recall import locomo
from benchmarks.recall.conversations import Message
from benchmarks.recall.measure import server_settings
from benchmarks.report import Skipped, print_ratio, print_table
from benchmarks.servers import Gateway, User, create_user, gateway, resident_bytes, work_folder
from memory_gateway.demo.child import free_port
from tests.everos_live import install
from tests.everos_live.server import EverosServer, running_everos

MESSAGES = 119
QUESTIONS = 32
BATCH = 20
TOP_K = 10
CONNECTIONS = 16
MIB = 1 << 20
UPKEEP_SECONDS = 75.0  # EverOS tends its index a minute after a start; until then it is at its slowest
HEAD = ("searches", "p50 ms", "p95 ms", "CPU ms")
QUERY = "the report on the northern pier"
_MOST_A_SECOND = 4_000
_WARMUP = 1.0
_numbers = itertools.count()

Queries = Callable[[int], Iterator[str]]


class Target(Struct, frozen=True):
    """Where searches go, and what they look like there."""

    pid: int
    port: int
    path: str
    headers: Mapping[str, str]
    always: Mapping[str, Any]

    def request(self, query: str, method: str) -> bytes:
        body = {"query": query, "method": method, "top_k": TOP_K, **self.always}
        return request_bytes("POST", self.path, dict(self.headers), msgspec.json.encode(body))

    def ask(self, query: str, method: str) -> Any:
        body = {"query": query, "method": method, "top_k": TOP_K, **self.always}
        url = f"http://127.0.0.1:{self.port}{self.path}"
        reply = httpx.post(url, headers=dict(self.headers), json=body, timeout=60, trust_env=False)
        return reply.raise_for_status().json()


class Load(Struct, frozen=True):
    """What is measured with how many connections."""

    label: str
    method: str
    queries: Queries
    connections: int = CONNECTIONS


class Rate(Struct, frozen=True):
    """``busy_ms``: processor time that the server spent on a search, which other work on the machine changes least."""

    per_second: float
    p50_ms: float
    p95_ms: float
    busy_ms: float


def main(seconds: float = 4.0, rounds: int = 3) -> None:
    """Print the three parts."""
    try:
        beside_a_real_one(seconds, rounds)
    except Skipped as missing:
        print(f"  the parts on a real EverOS are skipped: {missing}", flush=True)
    alone(seconds, rounds)


def beside_a_real_one(seconds: float, rounds: int) -> None:
    if not install.installed():
        raise Skipped("EverOS is not installed; make everos does it")
    conversation = locomo.load()[0]
    asked = [question.text for question in conversation.questions]
    messages, questions = conversation.messages[:MESSAGES], asked[:QUESTIONS]
    settings, owner = server_settings("local"), messages[0].sender_id
    with work_folder() as folder, running_everos(folder, Path(settings["embedder_model"]), asked) as everos:
        behind = {"upstream": "everos", "upstream_url": everos.url, "allow_other_senders": "true"}
        with gateway(None, **settings) as embedded, gateway(None, **behind) as front:
            readers = [create_user(server, owner) for server in (embedded, front)]
            for server, reader in zip((embedded, front), readers, strict=True):
                add(server, reader, messages)
            everos.index_words()
            _wait_until_embedded(embedded)
            time.sleep(UPKEEP_SECONDS)
            targets = {
                "engine": _through(embedded, readers[0]),
                "gateway": _through(front, readers[1]),
                "EverOS": _direct(everos, owner),
            }
            require_answers(targets, questions)
            compare_engines(targets, questions, seconds, rounds)
            memory = {name: resident_bytes(one) / MIB for name, one in (("engine", embedded), ("EverOS", everos))}
            print(f"  memory: engine {memory['engine']:.0f} MiB, EverOS {memory['EverOS']:.0f} MiB")
            compare_ways(targets, questions, seconds, rounds)


def add(server: Gateway, reader: User, messages: Sequence[Message]) -> None:
    """Session by session, in batches, each session closed."""
    with httpx.Client(base_url=server.url, headers=reader.headers, timeout=120, trust_env=False) as client:
        for session_id, said in itertools.groupby(messages, key=lambda message: message.session_id):
            wire = [_wire(message) for message in said]
            for start in range(0, len(wire), BATCH):
                body = {"session_id": session_id, "messages": wire[start : start + BATCH]}
                client.post("/memories/add", json=body).raise_for_status()
            client.post("/memories/flush", json={"session_id": session_id}).raise_for_status()


def _wire(message: Message) -> dict[str, Any]:
    return {
        "sender_id": message.sender_id,
        "sender_name": message.sender_name,
        "role": message.role,
        "timestamp": message.timestamp,
        "content": message.text,
    }


def _wait_until_embedded(server: Gateway) -> None:
    while httpx.get(f"{server.url}/health", trust_env=False).json()["upstream"]["backlog"]:
        time.sleep(0.2)


def _through(server: Gateway, reader: User) -> Target:
    always = {"include_profile": False, "enable_llm_rerank": False}
    return Target(server.pid, server.port, "/memories/search", reader.headers, always)


def _direct(everos: EverosServer, owner: str) -> Target:
    """What the gateway sends to EverOS for the same search."""
    always = {"include_profile": False, "enable_llm_rerank": False, "app_id": "default", "project_id": "default"}
    return Target(everos.pid, everos.port, "/api/v1/memory/search", {}, {"user_id": owner, **always})


def require_answers(targets: Mapping[str, Target], questions: Sequence[str]) -> None:
    """Every question is answered by all, so that its vector is known to all afterwards."""
    for question in questions:
        direct = targets["EverOS"].ask(question, "hybrid")["data"]["episodes"]
        relayed = targets["gateway"].ask(question, "hybrid")["results"]
        if not direct or [one["id"] for one in direct] != [one["id"] for one in relayed]:
            raise AssertionError(f"EverOS and the gateway on it differ on {question!r}: {direct} {relayed}")
        if not targets["engine"].ask(question, "hybrid")["results"]:
            raise AssertionError(f"the engine finds nothing for {question!r}")


def compare_engines(targets: Mapping[str, Target], questions: Sequence[str], seconds: float, rounds: int) -> None:
    loads = [
        Load("keyword", "keyword", _again(questions)),
        Load("hybrid, query's vector known", "hybrid", _again(questions)),
        Load("hybrid, query's vector made", "hybrid", _never_again(questions)),
    ]
    pair = {name: targets[name] for name in ("engine", "EverOS")}
    rates = [_rates(pair, load, seconds, rounds) for load in loads]
    print_table(
        f"The same {MESSAGES} messages, {CONNECTIONS} connections, medians of {rounds} alternating rounds",
        ("search", *(f"{name} {what}" for name in pair for what in HEAD)),
        [(load.label, *_cells(measured)) for load, measured in zip(loads, rates, strict=True)],
    )
    for load, measured, goal in zip(loads, rates, ("at least 15", "at least 15", "none"), strict=True):
        print_ratio(f"{load.label}, engine against EverOS", _ratio(measured), goal)


def _ratio(measured: Mapping[str, Rate]) -> float:
    return measured["engine"].per_second / measured["EverOS"].per_second


def compare_ways(targets: Mapping[str, Target], questions: Sequence[str], seconds: float, rounds: int) -> None:
    pair = {name: targets[name] for name in ("gateway", "EverOS")}
    for method in ("keyword", "hybrid"):
        rows = {}
        for connections in (1, CONNECTIONS):
            rows[connections] = _rates(pair, Load(method, method, _again(questions), connections), seconds, rounds)
        print_table(
            f"EverOS through the gateway and directly, {method}, medians of {rounds} alternating rounds",
            ("connections", *(f"{name} {what}" for name in pair for what in HEAD)),
            [(str(connections), *_cells(rates)) for connections, rates in rows.items()],
        )
        one, many = ((rates["gateway"], rates["EverOS"]) for rates in rows.values())
        print_ratio("milliseconds added at 1 connection, p50", one[0].p50_ms - one[1].p50_ms, "at most 3")
        print_ratio("milliseconds added at 1 connection, p95", one[0].p95_ms - one[1].p95_ms, "at most 10")
        print_ratio("throughput at 16 connections", many[0].per_second / many[1].per_second, "at least 0.9")


def _cells(rates: Mapping[str, Rate]) -> tuple[str, ...]:
    """Under `HEAD`, for each of them."""
    return tuple(cell for rate in rates.values() for cell in _shown(rate))


def _shown(rate: Rate) -> tuple[str, ...]:
    return f"{rate.per_second:,.0f}/s", f"{rate.p50_ms:.1f}", f"{rate.p95_ms:.1f}", f"{rate.busy_ms:.1f}"


def _again(questions: Sequence[str]) -> Queries:
    """The same questions over and over."""
    return lambda count: itertools.islice(itertools.cycle(questions), count)


def _never_again(questions: Sequence[str]) -> Queries:
    """Every query another, so that no vector is known."""
    return lambda count: (f"{question} ({next(_numbers)})" for question in _again(questions)(count))


def _rates(targets: Mapping[str, Target], load: Load, seconds: float, rounds: int) -> dict[str, Rate]:
    """Each alone while it is measured, in turns, so that a busy moment of the machine meets all. Medians."""
    measured: dict[str, list[Rate]] = {name: [] for name in targets}
    for _ in range(rounds):
        for name, target in targets.items():
            measured[name].append(_rate(target, load, seconds))
    return {name: _median(rates) for name, rates in measured.items()}


def _rate(target: Target, load: Load, seconds: float) -> Rate:
    before = _busy_seconds(target.pid)
    result = measure(_plan(target, load, seconds)).require(200)
    busy_ms = 1000 * (_busy_seconds(target.pid) - before) / result.next_number
    return Rate(result.per_second, result.p50_ms, result.p95_ms, busy_ms)


def _busy_seconds(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def _median(rates: Sequence[Rate]) -> Rate:
    return Rate(*(statistics.median(values) for values in zip(*map(msgspec.structs.astuple, rates), strict=True)))


def _plan(target: Target, load: Load, seconds: float) -> Plan:
    queries = load.queries(int(_MOST_A_SECOND * (seconds + _WARMUP)))
    requests = tuple(target.request(query, load.method) for query in queries)
    return Plan(target.port, requests[0], load.connections, seconds, _WARMUP, requests=requests)


def alone(seconds: float, rounds: int) -> None:
    """Authentication, tombstones, overrides and attachments of a search, with nothing behind it that takes time."""
    with _instant() as url, gateway(upstream="everos", upstream_url=url) as server:
        reader = create_user(server, USER)
        edit(server, reader)
        target = Target(server.pid, server.port, "/memories/search", reader.headers, {"top_k": SHOWN})
        rates = _rates({"": target}, Load("", "keyword", _again([QUERY])), seconds, rounds)
    print_table(
        f"One gateway process before an instant EverOS: {SHOWN} results, {len(FILES)} attachments in the session",
        ("", *HEAD),
        [(f"{CONNECTIONS} connections", *_cells(rates))],
    )
    print_ratio("searches a second", rates[""].per_second, "at least 1,500")


@contextmanager
def _instant() -> Iterator[str]:
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.instant_everos", str(port)], cwd=ROOT)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def edit(server: Gateway, reader: User) -> None:
    """Twenty files in the session, two memories deleted, one overridden."""
    with httpx.Client(base_url=server.url, headers=reader.headers, timeout=60, trust_env=False) as client:
        code = base64.b64encode(b"A report on the northern pier.").decode()
        files = [{"type": "doc", "base64": code, "ext": "txt", "name": name} for name in FILES]
        message = {"sender_id": USER, "role": "user", "timestamp": 1_767_348_000_000, "content": files}
        body = {"conversation_id": CONVERSATION, "messages": [message]}
        client.post("/memories/add", json=body).raise_for_status()
        shown = _results(client, _body(ALL, top_k=100))
        for memory in shown[SHOWN:]:
            client.delete(f"/memories/{memory['id']}").raise_for_status()
        client.put(f"/memories/{shown[0]['id']}", json={"text": "The northern pier is closed."}).raise_for_status()
        results = _results(client, _body(QUERY))
        attached = [len(memory["attachments"]) for memory in results]
        if (attached, results[0]["overridden"]) != ([1] * SHOWN, True):
            raise AssertionError(f"not what is to be measured: {attached}")


def _results(client: httpx.Client, body: bytes) -> list[dict[str, Any]]:
    reply = client.post("/memories/search", content=body, headers={"Content-Type": "application/json"})
    results: list[dict[str, Any]] = reply.raise_for_status().json()["results"]
    return results


def _body(query: str, **options: Any) -> bytes:
    return msgspec.json.encode({"query": query, "method": "keyword", **options})


if __name__ == "__main__":
    main()
