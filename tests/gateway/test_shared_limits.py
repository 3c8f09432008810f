"""Two processes, one limit: what the one lets through the other knows after their next exchange."""

import pytest

from memory_gateway.gateway.limits.buckets import TokenBuckets
from memory_gateway.gateway.limits.sharing import SharedLimits
from memory_gateway.kit.errors import StorageUnavailable, TooManyRequests
from tests.fakes.clock import TurnedClock
from tests.fakes.databases import AnyDatabase


class Process:
    """One of several on the same database, with a burst of ten and two more a second."""

    def __init__(self, database: AnyDatabase, clock: TurnedClock) -> None:
        self.buckets = TokenBuckets(2.0, burst=10.0, monotonic=lambda: clock() / 1000)
        self.limits = SharedLimits(database, clock, {"user": self.buckets})

    def take(self, name: str, times: int = 1) -> None:
        for _ in range(times):
            self.buckets.take(name)

    def left(self, name: str) -> int:
        """How many requests are still let through, which takes them."""
        for passed in range(1_000):
            try:
                self.buckets.take(name)
            except TooManyRequests:
                return passed
        raise AssertionError("no limit")


@pytest.fixture
def clock() -> TurnedClock:
    return TurnedClock()


@pytest.fixture
async def processes(database: AnyDatabase, clock: TurnedClock) -> tuple[Process, Process]:
    first, second = Process(database, clock), Process(database, clock)
    await first.limits.exchange()
    await second.limits.exchange()
    return first, second


async def exchange(*processes: Process) -> None:
    for _ in range(2):
        for process in processes:
            await process.limits.exchange()


async def test_what_one_process_lets_through_the_other_counts(processes: tuple[Process, Process]) -> None:
    first, second = processes
    first.take("ann", 6)
    await first.limits.exchange()
    second.take("ann")
    await second.limits.exchange()
    assert second.left("ann") == 3


async def test_look_alikes_and_other_kinds_of_limit_have_buckets_of_their_own(
    processes: tuple[Process, Process], database: AnyDatabase, clock: TurnedClock
) -> None:
    first, second = processes
    first.take("ann", 10)
    await first.limits.exchange()
    address = TokenBuckets(2.0, burst=10.0, monotonic=lambda: clock() / 1000)
    other = SharedLimits(database, clock, {"address": address})
    await other.exchange()
    address.take("ann")
    for name in ("anna", "Ann", "a_b"):
        second.take(name)
    await second.limits.exchange()
    await other.exchange()
    assert [second.left(name) for name in ("anna", "Ann", "a_b")] == [9, 9, 9]
    address.take("ann")


async def test_what_was_let_through_too_much_is_paid_back_and_then_the_rate_holds(
    processes: tuple[Process, Process], clock: TurnedClock
) -> None:
    first, second = processes
    assert (first.left("ann"), second.left("ann")) == (10, 10)
    await exchange(first, second)
    clock.forward(seconds=5)
    assert (first.left("ann"), second.left("ann")) == (0, 0)
    passed = 0
    for _ in range(20):
        clock.forward(seconds=1)
        passed += first.left("ann") + second.left("ann")
        await exchange(first, second)
    assert 40 <= passed + 4 <= 50  # two a second, whatever was too much in the last of them


async def test_a_clock_that_is_behind_costs_nobody_a_request(database: AnyDatabase) -> None:
    ahead, behind = TurnedClock(), TurnedClock()
    ahead.forward(seconds=60)
    first, second = Process(database, ahead), Process(database, behind)
    await exchange(first, second)
    for _ in range(20):
        first.take("ann")  # as often as the rate allows the two of them
        second.take("ann")
        await exchange(first, second)
        ahead.forward(seconds=1)
        behind.forward(seconds=1)


async def test_a_full_bucket_leaves_no_row(
    processes: tuple[Process, Process], database: AnyDatabase, clock: TurnedClock
) -> None:
    first, _ = processes
    first.take("ann", 3)
    await first.limits.exchange()
    await first.limits.exchange()
    clock.forward(seconds=60)
    first.take("bob")
    await first.limits.exchange()
    assert await database.fetch("SELECT name FROM token_buckets") == [("user:bob",)]


async def test_a_database_that_is_away_leaves_each_process_its_own_count(
    processes: tuple[Process, Process], database: AnyDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = processes

    async def away(_: object, **_owner: object) -> None:
        raise StorageUnavailable("away")

    monkeypatch.setattr(database, "write", away)
    first.take("ann", 4)
    with pytest.raises(StorageUnavailable):
        await first.limits.exchange()
    assert first.left("ann") == 6
