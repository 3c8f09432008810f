"""Token buckets in memory. Each process has its own; `memory_gateway.gateway.limits.sharing` makes them agree."""

import time
from collections import Counter, OrderedDict
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
        self._taken: Counter[str] | None = None

    @property
    def rate(self) -> float:
        """Tokens a second."""
        return self._rate

    @property
    def burst(self) -> float:
        """What a full bucket holds."""
        return self._burst

    def take(self, name: str) -> None:
        """Take one token or raise `TooManyRequests`, which says when the next one comes."""
        now = self._monotonic()
        tokens = self._enough(name, now)
        if self._taken is not None:
            self._taken[name] += 1
        self._keep(name, tokens - 1.0, now)

    def check(self, name: str) -> None:
        """As `take`, but leaves the token."""
        self._enough(name, self._monotonic())

    def taken(self) -> Counter[str]:
        """How many tokens were taken of each name since this was asked last; the first time it begins to count."""
        taken, self._taken = self._taken, Counter()
        return taken or Counter()

    def settle(self, name: str, tokens: float) -> None:
        """What all processes together have left; what was taken here meanwhile is not in it yet."""
        if name in self._buckets:
            untold = 0 if self._taken is None else self._taken[name]
            self._keep(name, tokens - untold, self._monotonic())

    def _keep(self, name: str, tokens: float, now: float) -> None:
        self._buckets[name] = (tokens, now)
        self._buckets.move_to_end(name)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)

    def _enough(self, name: str, now: float) -> float:
        tokens = self._tokens(name, now)
        if tokens < 1.0:
            raise TooManyRequests("too many requests", retry_after=(1.0 - tokens) / self._rate)
        return tokens

    def _tokens(self, name: str, now: float) -> float:
        tokens, since = self._buckets.get(name, (self._burst, now))
        return min(self._burst, tokens + (now - since) * self._rate)
