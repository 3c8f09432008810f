import time

import pytest

from memory_gateway.gateway.resources.tries import Tries, passes
from memory_gateway.kit.errors import InvalidInput, UpstreamRefused


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time in seconds, to be turned."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_the_pause_doubles_up_to_an_hour_and_ends_after_twenty_tries(now: list[float]) -> None:
    counted, pauses = Tries(), []
    while counted.again("1"):
        started = now[0]
        while counted.waits("1"):
            now[0] += 30
        pauses.append(now[0] - started)
    assert pauses == [30, 60, 120, 240, 480, 960, 1920] + [3600] * 12


def test_a_resource_waits_for_itself_alone(now: list[float]) -> None:
    counted = Tries()
    counted.again("1")
    assert counted.waits("1")
    assert not counted.waits("11")
    counted.forget("1")
    assert not counted.waits("1")


@pytest.mark.parametrize(
    "error",
    [
        InvalidInput("is wrong", field="messages.0"),
        UpstreamRefused(415, "UNSUPPORTED_FORMAT", ""),
        UpstreamRefused(500, "INTERNAL_ERROR", ""),
        UpstreamRefused(503, "CAPABILITY_UNAVAILABLE", ""),
        RuntimeError(),
    ],
)
def test_what_is_about_the_file_does_not_pass(error: Exception) -> None:
    assert not passes(error)
