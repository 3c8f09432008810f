"""What the adapter makes of a real EverOS's refusals and of the answers that no request of the port provokes."""

from typing import Any

import msgspec
import pytest

from memory_gateway.engine.schemas import AddReply, AddRequest, Caller, FlushRequest, Message, SearchRequest
from memory_gateway.kit.errors import UpstreamRefused, UpstreamUnreachable
from memory_gateway.upstream.everos import EverosUpstream
from tests.fakes.everos import CAPTURES, answering, capture, capture_names

CALLER = Caller(user_id="u_ana")
ADD = AddRequest("chat:q1", (Message("u_q", "user", 1_780_000_000_001, "First async note."),))
SEARCH = SearchRequest("falcon", user_id="u_ana")
VALIDATION: list[dict[str, Any]] = msgspec.json.decode((CAPTURES / "validation-errors.json").read_bytes())
ABOUT_THE_REQUEST = [fault for fault in VALIDATION if fault.get("code") == "INVALID_INPUT"]
OTHERS = [fault for fault in VALIDATION if fault["status"] >= 400 and fault["code"] != "INVALID_INPUT"]

SAID = {
    "error-add-sender-id": "String should match pattern '^[a-zA-Z0-9_.@+-]+$': messages.0.sender_id",
    "error-add-unsupported-format": "the memory system cannot read one of the items",
    "error-agent-with-filters-500": "the memory system failed",
    "error-embedding-down": "the memory system lacks something it needs for this",
    "error-filter-empty-in": "value for 'session_id' with 'in' must be a non-empty list",
    "error-filter-unknown-field": "unsupported filter field: 'foo'",
    "error-llm-down-add": "the memory system failed",
    "error-multimodal-parser-missing": "the memory system lacks something it needs for this",
    "error-payload-too-large": "the memory system takes no request of this size",
    "error-provider-not-configured": "the memory system refused the request",
    "error-queue-saturated": "the memory system has too much to do, try again later",
    "error-task-not-found": "the memory system refused the request",
    "error-unknown-search-field": "Extra inputs are not permitted: limit",
}


async def refusal_of(upstream: EverosUpstream) -> UpstreamRefused:
    with pytest.raises(UpstreamRefused) as caught:
        await upstream.search(SEARCH, CALLER)
    return caught.value


@pytest.mark.parametrize("name", SAID)
async def test_a_refusal_keeps_status_and_code_and_says_only_what_is_about_the_request(name: str) -> None:
    known = capture(name)
    refusal = await refusal_of(answering(known.status, known.response))
    assert refusal.status == known.status
    assert refusal.details == {"upstream": {"code": known.response["error"]["code"]}}
    assert refusal.message == SAID[name]


def test_every_captured_error_with_an_envelope_is_in_the_table() -> None:
    errors = {name for name in capture_names() if capture(name).status >= 400}
    assert errors - {"error-unknown-route"} == set(SAID)


async def test_an_unknown_route_is_not_the_clients_404() -> None:
    known = capture("error-unknown-route")
    assert known.status == 404
    with pytest.raises(UpstreamUnreachable):
        await answering(known.status, known.response).search(SEARCH, CALLER)


@pytest.mark.parametrize("fault", ABOUT_THE_REQUEST, ids=lambda fault: fault["name"])
async def test_a_fault_of_the_request_is_told_in_the_upstreams_words(fault: dict[str, Any]) -> None:
    refusal = await refusal_of(answering(fault["status"], envelope(fault)))
    assert (refusal.status, refusal.upstream_code, refusal.message) == (422, "INVALID_INPUT", fault["message"])


@pytest.mark.parametrize("fault", OTHERS, ids=lambda fault: fault["name"])
async def test_other_refusals_are_told_in_our_words(fault: dict[str, Any]) -> None:
    refusal = await refusal_of(answering(fault["status"], envelope(fault)))
    assert (refusal.status, refusal.upstream_code) == (fault["status"], fault["code"])
    assert refusal.message in set(SAID.values())
    assert refusal.message != fault["message"]


async def test_a_providers_words_do_not_pass_as_a_fault_of_the_request() -> None:
    quoted = "embedding input rejected (401): Error code: 401 - {'error': {'message': 'bad key sk-123'}}"
    refusal = await refusal_of(answering(422, envelope({"code": "INVALID_INPUT", "message": quoted})))
    assert (refusal.status, refusal.message) == (422, "the memory system refused the request")


async def test_a_queued_add_is_told_as_queued() -> None:
    known = capture("add-async-accepted")
    assert known.status == 202
    assert await answering(known.status, known.response).add(ADD, CALLER) == AddReply(1, "queued")


async def test_a_queued_flush_is_told_as_queued() -> None:
    queued = answering(202, {"request_id": "1", "data": {"status": "queued", "pending": 2}})
    assert (await queued.flush(FlushRequest("chat:q1"), CALLER)).status == "queued"


async def test_the_method_that_the_gateway_does_not_offer_answers_in_the_same_shape() -> None:
    known = capture("search-llm-multiround")
    reply = await answering(known.status, known.response).search(SEARCH, CALLER)
    assert msgspec.to_builtins(reply) == known.response["data"]


def envelope(fault: dict[str, Any]) -> dict[str, Any]:
    return {"request_id": "1", "error": {"code": fault["code"], "message": fault["message"], "path": "/x"}}
