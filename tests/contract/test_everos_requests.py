"""The adapter sends what a real EverOS was sent, and hands its answers on as they came."""

from contextlib import suppress
from typing import Any

import msgspec
import pytest

from memory_gateway.engine.schemas import (
    AddReply,
    AddRequest,
    Caller,
    FlushReply,
    FlushRequest,
    GetReply,
    GetRequest,
    Message,
    SearchReply,
    SearchRequest,
)
from memory_gateway.kit.errors import UpstreamRefused
from memory_gateway.upstream.everos import EverosUpstream
from tests.fakes.everos import Capture, capture, capture_names, replaying, with_defaults

CALLER = Caller(user_id="u_ana")
Request = AddRequest | FlushRequest | SearchRequest | GetRequest
STRUCTS: dict[str, type[FlushRequest | SearchRequest | GetRequest]] = {
    "flush": FlushRequest,
    "search": SearchRequest,
    "get": GetRequest,
}

# What no request of the port can say; `test_everos_errors.py` and `tests/upstream` read their answers.
OUT_OF_REACH = {
    "add-async-accepted": "async_mode",
    "error-agent-with-filters-500": "the adapter asks another way",
    "error-payload-too-large": "async_mode",
    "error-queue-saturated": "async_mode",
    "error-task-not-found": "the tasks route",
    "error-unknown-route": "a route that is not there",
    "error-unknown-search-field": "a field that is not there",
    "health-full": "no body",
    "search-llm-multiround": "a method that the gateway does not offer",
}
WITHIN_REACH = [name for name in capture_names() if name not in OUT_OF_REACH]


def request_of(known: Capture) -> Request:
    body = known.request.body or {}
    if known.request.call != "add":
        return msgspec.convert(body, STRUCTS[known.request.call])
    place = {name: value for name, value in body.items() if name != "messages"}
    return AddRequest(messages=msgspec.convert(body["messages"], tuple[Message, ...]), **place)


async def ask(upstream: EverosUpstream, request: Request) -> AddReply | FlushReply | SearchReply | GetReply:
    if isinstance(request, AddRequest):
        return await upstream.add(request, CALLER)
    if isinstance(request, FlushRequest):
        return await upstream.flush(request, CALLER)
    if isinstance(request, SearchRequest):
        return await upstream.search(request, CALLER)
    return await upstream.get(request, CALLER)


def nulls_in(value: Any, path: str = "") -> list[str]:
    if value is None:
        return [path]
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [null for name, part in parts for null in nulls_in(part, f"{path}.{name}")]


@pytest.mark.parametrize("name", WITHIN_REACH)
async def test_the_captured_body_goes_out(name: str) -> None:
    known = capture(name)
    upstream, server = replaying(known)
    with suppress(UpstreamRefused):
        await ask(upstream, request_of(known))
    assert [request.url.path for request in server.requests] == [known.request.path]
    assert server.requests[0].headers["content-type"] == "application/json"
    assert server.bodies == [with_defaults(known.request.call, known.request.body)]


@pytest.mark.parametrize("name", [name for name in WITHIN_REACH if capture(name).status == 200])
async def test_the_captured_answer_comes_in(name: str) -> None:
    known = capture(name)
    reply = await ask(replaying(known)[0], request_of(known))
    data = known.response["data"]
    assert msgspec.to_builtins(reply) == data


@pytest.mark.parametrize("name", [name for name in WITHIN_REACH if name != "search-filter-null-is-dropped"])
async def test_no_null_is_ever_sent(name: str) -> None:
    upstream, server = replaying(capture(name))
    with suppress(UpstreamRefused):
        await ask(upstream, request_of(capture(name)))
    assert nulls_in(server.bodies[0]) == []


@pytest.mark.parametrize("name", [name for name in WITHIN_REACH if name.startswith("add-")])
async def test_the_clients_messages_go_out_byte_for_byte(name: str) -> None:
    known = capture(name)
    written = msgspec.json.format(msgspec.json.encode((known.request.body or {})["messages"]), indent=3)
    request = msgspec.structs.replace(request_of(known), wire_messages=msgspec.Raw(written))
    upstream, server = replaying(known)
    reply = await ask(upstream, request)
    assert written in server.requests[0].content
    assert isinstance(reply, AddReply)
    assert reply.message_count == known.response["data"]["message_count"]


def test_every_capture_is_used_or_named_as_out_of_reach() -> None:
    assert set(capture_names()) >= set(OUT_OF_REACH)
    assert len(WITHIN_REACH) == 31
