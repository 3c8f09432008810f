"""Token buckets in memory: each process has its own, so with several workers a limit counts for each of them."""

import time
from collections import OrderedDict
from collections.abc import Callable

from memory_gateway.kit.errors import TooManyRequests

_MOST_BUCKETS = 10_000


class TokenBuckets:
    """One bucket a name. It holds `burst` tokens, gets `rate` of them a second, and each request takes one.

    Only the names used last are kept: memory stays bounded whatever names come.
    """

    def __init__(
        self, rate: float, burst: float, *, monotonic: Callable[[], float] = time.monotonic, most: int = _MOST_BUCKETS
    ) -> None:
        self._rate = rate
        self._burst = max(1.0, burst)
        self._monotonic = monotonic
        self._most = most
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> None:
        """Take one token or raise `TooManyRequests`, which says when the next one comes."""
        now = self._monotonic()
        tokens = self._tokens(name, now)
        if tokens < 1.0:
            raise TooManyRequests("too many requests", retry_after=(1.0 - tokens) / self._rate)
        self._buckets[name] = (tokens - 1.0, now)
        self._buckets.move_to_end(name)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)

    def check(self, name: str) -> None:
        """As `take`, but leaves the token."""
        tokens = self._tokens(name, self._monotonic())
        if tokens < 1.0:
            raise TooManyRequests("too many requests", retry_after=(1.0 - tokens) / self._rate)

    def _tokens(self, name: str, now: float) -> float:
        tokens, since = self._buckets.get(name, (self._burst, now))
        return min(self._burst, tokens + (now - since) * self._rate)
