import pytest

from memory_gateway.gateway.limits.buckets import TokenBuckets
from memory_gateway.kit.errors import TooManyRequests


class Watch:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def test_a_burst_passes_and_then_one_at_a_time() -> None:
    watch = Watch()
    buckets = TokenBuckets(2.0, burst=3.0, monotonic=watch)
    for _ in range(3):
        buckets.take("ann")
    with pytest.raises(TooManyRequests) as caught:
        buckets.take("ann")
    assert caught.value.retry_after == 0.5
    watch.seconds += 0.5
    buckets.take("ann")
    with pytest.raises(TooManyRequests):
        buckets.take("ann")


def test_users_do_not_share_a_bucket() -> None:
    buckets = TokenBuckets(1.0, burst=1.0, monotonic=Watch())
    for name in ("ann", "anna", "Ann", "a_b", "%"):
        buckets.take(name)
    with pytest.raises(TooManyRequests):
        buckets.take("anna")


def test_a_bucket_never_holds_more_than_its_burst() -> None:
    watch = Watch()
    buckets = TokenBuckets(1.0, burst=2.0, monotonic=watch)
    buckets.take("ann")
    watch.seconds += 3600
    buckets.take("ann")
    buckets.take("ann")
    with pytest.raises(TooManyRequests):
        buckets.take("ann")


def test_a_refused_request_costs_nothing() -> None:
    watch = Watch()
    buckets = TokenBuckets(1.0, burst=1.0, monotonic=watch)
    buckets.take("ann")
    for _ in range(50):
        with pytest.raises(TooManyRequests):
            buckets.take("ann")
    watch.seconds += 1.0
    buckets.take("ann")


def test_check_leaves_the_token() -> None:
    buckets = TokenBuckets(1.0, burst=1.0, monotonic=Watch())
    buckets.check("ann")
    buckets.take("ann")
    with pytest.raises(TooManyRequests):
        buckets.check("ann")


def test_a_rate_below_one_still_lets_one_through() -> None:
    watch = Watch()
    buckets = TokenBuckets(0.1, burst=0.1, monotonic=watch)
    buckets.take("ann")
    with pytest.raises(TooManyRequests) as caught:
        buckets.take("ann")
    assert caught.value.retry_after == pytest.approx(10.0)


def test_only_the_names_used_last_are_kept() -> None:
    buckets = TokenBuckets(1.0, burst=1.0, monotonic=Watch(), most=2)
    for name in ("first", "second", "third"):
        buckets.take(name)
    buckets.take("first")
    with pytest.raises(TooManyRequests):
        buckets.take("third")


def test_a_name_in_use_is_not_forgotten_for_one_that_is_not() -> None:
    buckets = TokenBuckets(1.0, burst=2.0, monotonic=Watch(), most=2)
    for name in ("busy", "idle", "busy", "new"):
        buckets.take(name)
    with pytest.raises(TooManyRequests):
        buckets.take("busy")
