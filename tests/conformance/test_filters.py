"""The filter language, in search and in get (field case F3)."""

from typing import Any

import pytest

from memory_gateway.kit.errors import UpstreamRefused
from tests.conformance.corpus import NEWEST_FIRST, SESSIONS
from tests.conformance.filters import KEPT, NO_RESTRICTION, REFUSED, WINDOW, WINDOWS
from tests.conformance.world import METHODS, World, sessions

EVERY_METHOD = pytest.mark.parametrize("method", METHODS)


async def refusal(asking: Any) -> tuple[int, str, str]:
    with pytest.raises(UpstreamRefused) as caught:
        await asking
    return caught.value.status, caught.value.upstream_code, caught.value.message


@EVERY_METHOD
@pytest.mark.parametrize("written", WINDOWS)
async def test_a_window_is_half_open_however_it_is_written(world: World, written: str, method: str) -> None:
    reply = await world.search(filters=WINDOWS[written], method=method)
    assert set(sessions(reply)) == WINDOW


@pytest.mark.parametrize("name", KEPT)
async def test_a_filter_keeps_exactly_what_it_says(world: World, name: str) -> None:
    condition, kept = KEPT[name]
    assert set(sessions(await world.search(filters=condition))) == kept


@pytest.mark.parametrize("name", ["session, in", "session, gt and lte", "sender, plain", "timestamp, gt"])
@EVERY_METHOD
async def test_a_filter_keeps_the_same_with_every_method(world: World, method: str, name: str) -> None:
    condition, kept = KEPT[name]
    assert set(sessions(await world.search(filters=condition, method=method))) == kept


@pytest.mark.parametrize("name", ["session, ne", "timestamp, ISO", "sender, in", "OR", "a contradiction"])
async def test_get_keeps_the_same_as_search(world: World, name: str) -> None:
    condition, kept = KEPT[name]
    reply = await world.get(filters=condition)
    assert sessions(reply) == [session for session in NEWEST_FIRST if session in kept]
    assert (reply.total_count, reply.count) == (len(kept), len(kept))


@pytest.mark.parametrize("name", NO_RESTRICTION)
async def test_a_filter_that_says_nothing_restricts_nothing(world: World, name: str) -> None:
    assert set(sessions(await world.search(filters=NO_RESTRICTION[name]))) == SESSIONS


@pytest.mark.parametrize("name", ["empty", "OR empty"])
@EVERY_METHOD
async def test_it_restricts_nothing_with_every_method(world: World, method: str, name: str) -> None:
    reply = await world.search(filters=NO_RESTRICTION[name], method=method)
    assert set(sessions(reply)) == SESSIONS


@pytest.mark.parametrize("name", REFUSED)
async def test_a_faulty_filter_is_refused_in_these_words(world: World, name: str) -> None:
    condition, words = REFUSED[name]
    assert await refusal(world.search(filters=condition)) == (422, "INVALID_INPUT", words)


@pytest.mark.parametrize("name", ["unknown field", "unknown operator", "session, in nothing", "owner_id"])
@EVERY_METHOD
async def test_it_is_refused_with_every_method(world: World, method: str, name: str) -> None:
    condition, words = REFUSED[name]
    assert await refusal(world.search(filters=condition, method=method)) == (422, "INVALID_INPUT", words)


@pytest.mark.parametrize("name", ["unknown field", "unknown operator", "session, in nothing", "AND is a map"])
async def test_get_refuses_the_same(world: World, name: str) -> None:
    condition, words = REFUSED[name]
    assert await refusal(world.get(filters=condition)) == (422, "INVALID_INPUT", words)


async def test_an_agents_unknown_field_is_refused_too(world: World) -> None:
    asking = world.search(filters={"foo": "x"}, agent_id="bot")
    assert await refusal(asking) == (422, "INVALID_INPUT", "unsupported filter field: 'foo'")
