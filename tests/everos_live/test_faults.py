"""The faults of a real EverOS, and of what it leans on, as a client of the gateway meets them."""

import base64
import time
from collections.abc import Callable, Iterator

import pytest

from memory_gateway.demo.child import RunningServer
from tests.everos_live.conftest import Newcomer
from tests.everos_live.people import chat, flush, said, search, tell
from tests.everos_live.server import EverosServer

pytestmark = pytest.mark.live

AT_MOST_SECONDS = 20
BESIDES = {"type": "doc", "base64": base64.b64encode(b"timetable").decode(), "ext": "txt", "name": "ferry.txt"}


@pytest.fixture
def model_fault(live_everos: EverosServer) -> Iterator[Callable[[int | None], None]]:
    """Refuses every call of the language model with this status, until told otherwise."""

    def refuse(status: int | None) -> None:
        live_everos.model.fault = status

    live_everos.settle()  # the fault is for this test, not for what others left to be extracted
    yield refuse
    refuse(None)


def test_an_add_during_a_models_outage_leaves_nothing_and_may_be_repeated(
    live_everos: EverosServer, gateway: RunningServer, newcomer: Newcomer, model_fault: Callable[[int | None], None]
) -> None:
    pat = newcomer("pat")
    body = said(pat, [{"type": "text", "text": "The ferry leaves at ten."}, BESIDES])
    model_fault(500)
    refused = pat.http.post("/memories/add", json=body)
    assert refused.status_code == 500
    assert refused.json()["error"]["details"]["upstream"]["code"] == "INTERNAL_ERROR"
    assert "stand-in" not in refused.text
    stored = gateway.log.parent / "data" / "storage" / pat.user_id
    assert [path for path in stored.rglob("*") if path.is_file()] == []
    model_fault(None)
    assert pat.http.post("/memories/add", json=body).status_code == 200
    flush(pat)
    live_everos.settle()
    assert len(search(pat, "When does the ferry leave?")) == 1


def test_an_unreadable_file_is_refused_without_a_path_of_the_server(newcomer: Newcomer) -> None:
    quin = newcomer("quin")
    refused = quin.http.post("/memories/add", json=said(quin, [{**BESIDES, "ext": "xyz", "name": "odd.xyz"}]))
    assert (refused.status_code, refused.json()["error"]["details"]["upstream"]["code"]) == (415, "UNSUPPORTED_FORMAT")
    assert refused.json()["error"]["message"] == "the memory system cannot read one of the items"


def test_the_gateway_outlives_everos_and_finds_it_again(live_everos: EverosServer, newcomer: Newcomer) -> None:
    rae = newcomer("rae")
    tell(rae, "The ferry leaves at noon.")
    live_everos.settle()
    live_everos.kill()
    try:
        for path, body in (("add", said(rae, "And at one.")), ("search", {"query": "ferry"})):
            started = time.monotonic()
            reply = rae.http.post(f"/memories/{path}", json=body)
            assert (reply.status_code, reply.json()["error"]["code"]) == (502, "upstream_unreachable")
            assert time.monotonic() - started < AT_MOST_SECONDS
        health = rae.http.get("/health")
        assert (health.status_code, health.json()["status"]) == (200, "degraded")
    finally:
        live_everos.start()
    live_everos.settle()
    assert len(search(rae, "When does the ferry leave?")) == 1
    assert rae.add("And at two.", conversation=chat(rae)).status_code == 200
