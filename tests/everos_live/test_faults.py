"""The faults of a real EverOS, and of what it leans on, as a client of the gateway meets them."""

import base64
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from memory_gateway.demo.child import RunningServer
from memory_gateway.kit.clock import system_clock
from tests.e2e.conftest import Person, register
from tests.everos_live.server import EverosServer

pytestmark = pytest.mark.live

Gateway = Callable[..., RunningServer]
AT_MOST_SECONDS = 10


@pytest.fixture
def model_fault(live_everos: EverosServer) -> Iterator[Callable[[int | None], None]]:
    """Refuses every call of the language model with this status, until told otherwise."""

    def refuse(status: int | None) -> None:
        live_everos.model.fault = status

    yield refuse
    refuse(None)


def stamped(person: Person, *texts: str) -> dict[str, Any]:
    """A body that is the same whenever it is sent."""
    start = system_clock()
    messages = [
        {"sender_id": person.user_id, "role": "user", "timestamp": start + number, "content": text}
        for number, text in enumerate(texts)
    ]
    return {"conversation_id": "1", "messages": messages}


def vector(person: Person, query: str) -> list[str]:
    return [found["text"] for found in person.search(query, method="vector", include_profile=False)]


def test_an_add_repeated_after_extraction_is_one_memory_with_an_idempotency_key(
    live_everos: EverosServer, own_gateway: Gateway
) -> None:
    olga = register(own_gateway(), "olga.faults")
    body, key = stamped(olga, "The ferry leaves at nine."), {"Idempotency-Key": "the-ferry"}
    for _ in range(2):
        assert olga.http.post("/memories/add", json=body, headers=key).status_code == 200
        olga.http.post("/memories/flush", json={"conversation_id": "1"})
    live_everos.settle()
    assert len(vector(olga, "When does the ferry leave?")) == 1


def test_an_add_during_a_models_outage_leaves_nothing_and_may_be_repeated(
    live_everos: EverosServer, own_gateway: Gateway, model_fault: Callable[[int | None], None]
) -> None:
    gateway = own_gateway()
    pat = register(gateway, "pat.faults")
    body = stamped(pat, "The ferry leaves at ten.")
    item = {"type": "doc", "base64": base64.b64encode(b"timetable").decode(), "ext": "txt", "name": "ferry.txt"}
    body["messages"][0]["content"] = [{"type": "text", "text": "The ferry leaves at ten."}, item]
    model_fault(500)
    refused = pat.http.post("/memories/add", json=body)
    assert refused.status_code == 500
    assert refused.json()["error"]["details"]["upstream"]["code"] == "INTERNAL_ERROR"
    assert "stand-in" not in refused.text
    stored = gateway.log.parent / "data" / "storage"
    assert [path for path in stored.rglob("*") if path.is_file()] == []
    model_fault(None)
    assert pat.http.post("/memories/add", json=body).status_code == 200
    assert pat.http.post("/memories/flush", json={"conversation_id": "1"}).json()["data"] == {"status": "extracted"}
    live_everos.settle()
    assert len(vector(pat, "When does the ferry leave?")) == 1


def test_an_unreadable_file_is_refused_without_a_path_of_the_server(own_gateway: Gateway) -> None:
    quin = register(own_gateway(), "quin.faults")
    body = stamped(quin, "")
    item = {"type": "doc", "base64": base64.b64encode(b"?").decode(), "ext": "xyz", "name": "odd.xyz"}
    body["messages"][0]["content"] = [item]
    refused = quin.http.post("/memories/add", json=body)
    assert (refused.status_code, refused.json()["error"]["details"]["upstream"]["code"]) == (415, "UNSUPPORTED_FORMAT")
    assert refused.json()["error"]["message"] == "the memory system cannot read one of the items"


def test_the_gateway_outlives_everos_and_finds_it_again(live_everos: EverosServer, own_gateway: Gateway) -> None:
    rae = register(own_gateway(), "rae.faults")
    assert rae.add("The ferry leaves at noon.").status_code == 200
    rae.http.post("/memories/flush", json={"conversation_id": "1"})
    live_everos.settle()
    live_everos.kill()
    try:
        for path, body in (("add", stamped(rae, "And at one.")), ("search", {"query": "ferry"})):
            started = time.monotonic()
            reply = rae.http.post(f"/memories/{path}", json=body)
            assert (reply.status_code, reply.json()["error"]["code"]) == (502, "upstream_unreachable")
            assert time.monotonic() - started < AT_MOST_SECONDS
        health = rae.http.get("/health")
        assert (health.status_code, health.json()["status"]) == (200, "degraded")
    finally:
        live_everos.start()
    live_everos.settle()
    assert len(vector(rae, "When does the ferry leave?")) == 1
    assert rae.add("And at two.").status_code == 200
