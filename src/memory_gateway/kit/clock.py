"""Time is passed in, so that tests turn it by hand."""

import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import Protocol


class Clock(Protocol):
    """Milliseconds since the Unix epoch."""

    def __call__(self) -> int: ...


def system_clock() -> int:
    """Milliseconds since the Unix epoch, from the machine's clock."""
    return time.time_ns() // 1_000_000


def rfc3339(epoch_ms: int) -> str:
    """``2026-05-28T20:26:40.000Z``: UTC, always with milliseconds, so that text order is time order."""
    seconds, milliseconds = divmod(epoch_ms, 1000)
    return f"{_second(seconds)}.{milliseconds:03d}Z"


@lru_cache(maxsize=1024)
def _second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


def epoch_ms(text: str) -> int:
    """The inverse of `rfc3339`; reads any RFC 3339 time with a zone."""
    moment = datetime.fromisoformat(text)
    return round(moment.timestamp() * 1000)
