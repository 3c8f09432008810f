"""The double that gateway tests lean on: it notes, plays its script, and keeps users apart as it claims to."""

import asyncio

import pytest
from msgspec import Raw

from memory_gateway.engine.schemas import (
    AddReply,
    AddRequest,
    Caller,
    FlushReply,
    FlushRequest,
    GetRequest,
    MemoryKey,
    Message,
    SearchReply,
    SearchRequest,
)
from memory_gateway.kit.errors import UpstreamRefused, UpstreamTimeout
from memory_gateway.upstream.port import Upstream, UpstreamTraits
from tests.fakes import items
from tests.fakes.upstream import EMBEDDED_LIKE, EVEROS_LIKE, RecordingUpstream

ANN, ANNA = Caller(user_id="ann"), Caller(user_id="anna")
BOTH = pytest.mark.parametrize("traits", [EVEROS_LIKE, EMBEDDED_LIKE], ids=["everos", "embedded"])
TEA = AddRequest("chat:1", (Message("ann", "user", 1_780_000_000_000, "green tea"),))
ASK = SearchRequest("tea", user_id="ann")


@BOTH
async def test_every_call_is_noted_with_its_caller(traits: UpstreamTraits) -> None:
    double = RecordingUpstream(traits)
    upstream: Upstream = double
    await upstream.add(TEA, ANN)
    await upstream.search(ASK, ANNA)
    assert [(call.operation, call.request) for call in double.calls] == [("add", TEA), ("search", ASK)]
    assert double.callers("search") == [ANNA]
    assert double.requests("flush") == []


async def test_sent_is_what_goes_over_the_wire() -> None:
    upstream = RecordingUpstream()
    await upstream.add(AddRequest("s", TEA.messages, wire_messages=Raw(b'[{"a": null}]')), ANN)
    await upstream.search(ASK, ANN)
    place = {"app_id": "default", "project_id": "default"}
    assert upstream.sent("add") == [{"session_id": "s", **place, "messages": [{"a": None}]}]
    options = {"method": "hybrid", "top_k": -1, "include_profile": False, "enable_llm_rerank": False}
    assert upstream.sent("search") == [{"query": "tea", "user_id": "ann", **options, **place}]


async def test_the_script_is_played_in_order_and_then_the_memory_answers() -> None:
    upstream = RecordingUpstream()
    upstream.reply("add", AddReply(7, "queued"))
    upstream.fail("add", UpstreamTimeout("slow"))
    upstream.reply("add", lambda request: AddReply(len(request.messages), "extracted"))
    assert await upstream.add(TEA, ANN) == AddReply(7, "queued")
    with pytest.raises(UpstreamTimeout):
        await upstream.add(TEA, ANN)
    assert await upstream.add(TEA, ANN) == AddReply(1, "extracted")
    assert await upstream.add(TEA, ANN) == AddReply(1, "accumulated")


async def test_a_held_call_waits_and_counts_as_in_flight() -> None:
    upstream = RecordingUpstream()
    gate = upstream.hold("add")
    adding = asyncio.create_task(upstream.add(TEA, ANN))
    await asyncio.sleep(0)
    assert (upstream.in_flight, adding.done()) == (1, False)
    gate.set()
    assert await adding == AddReply(1, "accumulated")
    assert upstream.in_flight == 0


async def test_everos_like_words_show_at_flush_and_to_whoever_asks() -> None:
    upstream = RecordingUpstream(EVEROS_LIKE)
    await upstream.add(TEA, ANN)
    by_session = SearchRequest("tea", user_id="anna", filters={"session_id": "chat:1"})
    assert [row["content"] for row in (await upstream.search(by_session, ANNA)).unprocessed_messages] == ["green tea"]
    assert (await upstream.search(ASK, ANN)).episodes == []
    assert await upstream.flush(FlushRequest("chat:1"), ANN) == FlushReply("extracted")
    assert len((await upstream.search(ASK, ANNA)).episodes) == 1


async def test_embedded_like_words_show_at_once_and_to_their_caller_only() -> None:
    upstream = RecordingUpstream(EMBEDDED_LIKE)
    await upstream.add(TEA, ANN)
    (opened,) = (await upstream.search(ASK, ANN)).episodes
    assert await upstream.search(ASK, ANNA) == SearchReply()
    await upstream.flush(FlushRequest("chat:1"), ANN)
    (closed,) = (await upstream.search(ASK, ANN)).episodes
    assert closed["id"] == opened["id"]
    assert (await upstream.get(GetRequest("episode", user_id="ann"), ANN)).total_count == 1


async def test_only_an_embedded_like_upstream_leaves_out_what_is_hidden() -> None:
    for traits, left in ((EVEROS_LIKE, ["e1", "e2"]), (EMBEDDED_LIKE, ["e2"])):
        upstream = RecordingUpstream(traits)
        for memory_id in ("e1", "e2"):
            upstream.memory.plant("episode", items.episode(memory_id, text="tea"), space="ann")
        hiding = Caller(user_id="ann", hidden=(MemoryKey("episode", "e1"),))
        assert [episode["id"] for episode in (await upstream.search(ASK, hiding)).episodes] == left


async def test_a_filter_is_obeyed_and_a_faulty_one_refused() -> None:
    upstream = RecordingUpstream()
    upstream.memory.plant("episode", items.episode("e1", text="tea", session_id="chat:1"))
    upstream.memory.plant("episode", items.episode("e2", text="tea", session_id="chat:2"))
    kept = SearchRequest("tea", user_id="ann", filters={"AND": [{"session_id": {"in": ["chat:2"]}}, {}]})
    assert [episode["id"] for episode in (await upstream.search(kept, ANN)).episodes] == ["e2"]
    with pytest.raises(UpstreamRefused, match="unsupported filter field: 'foo'"):
        await upstream.search(SearchRequest("tea", user_id="ann", filters={"foo": 1}), ANN)


async def test_only_an_embedded_like_upstream_can_erase() -> None:
    for traits, erased in ((EVEROS_LIKE, False), (EMBEDDED_LIKE, True)):
        upstream = RecordingUpstream(traits)
        await upstream.add(TEA, ANN)
        await upstream.flush(FlushRequest("chat:1"), ANN)
        assert (await upstream.erase("ann")).erased is erased
        assert bool((await upstream.search(ASK, ANN)).episodes) is not erased
