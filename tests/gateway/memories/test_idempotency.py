"""F6, below HTTP: one key, one piece of work, one answer."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from memory_gateway.gateway.memories import idempotency, store
from memory_gateway.gateway.memories.idempotency import Idempotency, KeyedRequest, StoredReply, keyed_request
from memory_gateway.gateway.memories.tasks import Tasks
from memory_gateway.kit.clock import rfc3339
from memory_gateway.kit.errors import Conflict, InvalidInput, StorageUnavailable, UpstreamTimeout
from memory_gateway.kit.ids import uuid7_id
from memory_gateway.storage.sqlite import SqliteDatabase
from tests.fakes.clock import TurnedClock

pytestmark = pytest.mark.timeout(60)  # what waits for ever is a fault

BODY = b'{"messages": [1, {"b": 2, "a": "\xe5\x9b\xbe"}], "session_id": "s"}'


class Work:
    """Counts its runs; each answers with its number, or fails as often as it is told to."""

    def __init__(self, failures: int = 0) -> None:
        self.runs = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self._failures = failures

    async def __call__(self) -> StoredReply:
        self.runs += 1
        await self.gate.wait()
        if self.runs <= self._failures:
            raise UpstreamTimeout("too slow")
        return StoredReply(202, f'{{"run": {self.runs}}}'.encode())


@pytest.fixture
def clock() -> TurnedClock:
    return TurnedClock()


@pytest.fixture
async def processes(database: SqliteDatabase, clock: TurnedClock) -> AsyncIterator[list[Idempotency]]:
    """Two processes on one database."""
    tasks = [Tasks(), Tasks()]
    yield [Idempotency(database, clock, uuid7_id, one) for one in tasks]
    for one in tasks:
        for task in list(one._running):
            task.cancel()
        await one.close()


def request(key: str = "k1", user_id: str = "ann", endpoint: str = "add", body: bytes = BODY) -> KeyedRequest:
    return keyed_request(user_id, endpoint, key, body)


async def test_the_first_answer_comes_again_to_the_byte(processes: list[Idempotency]) -> None:
    work = Work()
    for process in (*processes, *processes):
        assert await process.once(request(), work) == StoredReply(202, b'{"run": 1}')
    assert work.runs == 1


async def test_another_body_under_the_same_key_conflicts(processes: list[Idempotency]) -> None:
    await processes[0].once(request(), Work())
    for process in processes:
        with pytest.raises(Conflict):
            await process.once(request(body=b'{"session_id": "t"}'), Work())


@pytest.mark.parametrize(
    ("same", "other"),
    [
        (b'{"app_id": null, "project_id": "default"}', b'{"app_id": "Default"}'),
        (b'{"app_id": "default", "conversation_id": null}', b'{"conversation_id": "default"}'),
        (b"{}", b'{"project_id": "eu"}'),
    ],
)
async def test_what_says_the_same_as_leaving_it_out_is_the_same_body(
    processes: list[Idempotency], same: bytes, other: bytes
) -> None:
    work = Work()
    await processes[0].once(request(body=same), work)
    await processes[1].once(request(body=b'{"project_id": null}'), work)
    assert work.runs == 1
    with pytest.raises(Conflict):
        await processes[1].once(request(body=other), work)


@pytest.mark.parametrize("other", [{"user_id": "anna"}, {"endpoint": "flush"}, {"key": "K1"}, {"key": "k_"}])
async def test_a_key_counts_for_one_user_and_endpoint(processes: list[Idempotency], other: dict[str, str]) -> None:
    work = Work()
    await processes[0].once(request(), work)
    await processes[0].once(request(**other), work)  # type: ignore[arg-type]
    assert work.runs == 2


async def test_failures_are_not_remembered(processes: list[Idempotency]) -> None:
    work = Work(failures=1)
    with pytest.raises(UpstreamTimeout):
        await processes[0].once(request(), work)
    assert await processes[1].once(request(), work) == StoredReply(202, b'{"run": 2}')


async def test_a_second_request_joins_the_running_one_and_shares_its_outcome(processes: list[Idempotency]) -> None:
    for failures in (0, 1):
        work = Work(failures)
        work.gate.clear()
        key = f"shared {failures}".replace(" ", "-")
        waiting = [asyncio.create_task(processes[0].once(request(key), work)) for _ in range(5)]
        await asyncio.sleep(0.02)
        with pytest.raises(Conflict):
            await processes[0].once(request(key, body=b"{}"), work)
        work.gate.set()
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert work.runs == 1
        if failures:
            assert all(isinstance(outcome, UpstreamTimeout) for outcome in outcomes)
        else:
            assert outcomes == [StoredReply(202, b'{"run": 1}')] * 5


async def test_another_process_waits_for_the_first(processes: list[Idempotency]) -> None:
    work = Work()
    work.gate.clear()
    first = asyncio.create_task(processes[0].once(request(), work))
    await asyncio.sleep(0.02)
    with pytest.raises(Conflict):
        await processes[1].once(request(body=b"{}"), work)
    second = asyncio.create_task(processes[1].once(request(), work))
    await asyncio.sleep(0.02)
    assert not second.done()
    work.gate.set()
    assert await first == await second == StoredReply(202, b'{"run": 1}')
    assert work.runs == 1


async def test_of_processes_that_begin_at_once_one_does_the_work(processes: list[Idempotency]) -> None:
    work = Work()
    replies = await asyncio.gather(*(process.once(request(), work) for process in processes))
    assert replies == [StoredReply(202, b'{"run": 1}')] * 2
    assert work.runs == 1


async def test_a_holder_that_died_is_taken_over_once_its_hold_runs_out(
    processes: list[Idempotency], clock: TurnedClock, database: SqliteDatabase
) -> None:
    times = {"held_until": rfc3339(clock() + 15_000), "expires_at": rfc3339(clock() + 86_400_000)}
    held = request().params(body_hash=request().body_hash, holder="dead", **times)
    await database.write(lambda transaction: transaction.execute(store.HOLD_KEY, {**held, "now": rfc3339(clock())}))
    work = Work()
    waiting = asyncio.create_task(processes[0].once(request(), work))
    await asyncio.sleep(0.1)
    assert work.runs == 0
    clock.forward(seconds=15)
    assert await waiting == StoredReply(202, b'{"run": 1}')


async def test_a_holder_at_work_renews_its_hold(
    processes: list[Idempotency], clock: TurnedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "_RENEW_SECONDS", 0.01)
    work = Work()
    work.gate.clear()
    first = asyncio.create_task(processes[0].once(request(), work))
    await asyncio.sleep(0.02)
    second = asyncio.create_task(processes[1].once(request(), work))
    for _ in range(4):
        clock.forward(seconds=14)
        await asyncio.sleep(0.05)
    assert work.runs == 1
    work.gate.set()
    assert await first == await second


async def test_a_client_that_goes_away_cancels_nothing(processes: list[Idempotency]) -> None:
    work = Work()
    work.gate.clear()
    gone = asyncio.create_task(processes[0].once(request(), work))
    await asyncio.sleep(0.02)
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    work.gate.set()
    assert await processes[0].once(request(), work) == StoredReply(202, b'{"run": 1}')
    assert work.runs == 1


async def test_a_day_later_the_key_is_free(processes: list[Idempotency], clock: TurnedClock) -> None:
    work = Work()
    await processes[0].once(request(), work)
    await processes[0].once(request("other"), work)
    clock.forward(seconds=24 * 3600 - 1)
    await processes[0].once(request(), work)
    assert work.runs == 2
    clock.forward(seconds=1)
    assert await processes[0].once(request(body=b"{}"), work) == StoredReply(202, b'{"run": 3}')


async def test_a_sweep_drops_the_keys_whose_day_is_over_whoever_sent_them(
    processes: list[Idempotency], clock: TurnedClock, database: SqliteDatabase
) -> None:
    for user_id in ("ann", "anna"):
        await processes[0].once(request("old", user_id), Work())
    clock.forward(seconds=1)
    await processes[0].once(request("new", "a_n"), Work())
    clock.forward(seconds=24 * 3600 - 2)
    assert await processes[0].sweep() == 0
    clock.forward(seconds=1)
    assert await processes[1].sweep() == 2
    assert await database.fetch("SELECT user_id, idempotency_key FROM idempotency_keys") == [("a_n", "new")]


@pytest.mark.parametrize("failures", [0, 1])
async def test_what_became_of_the_work_is_told_even_when_it_cannot_be_noted(
    processes: list[Idempotency], database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    work = Work(failures)
    work.gate.clear()
    waiting = asyncio.create_task(processes[0].once(request(), work))
    while not work.runs:
        await asyncio.sleep(0.01)

    async def refuse(_: object, **_owner: object) -> None:
        raise StorageUnavailable("disk full")

    monkeypatch.setattr(database, "write", refuse)
    work.gate.set()
    (outcome,) = await asyncio.gather(waiting, return_exceptions=True)
    if failures:
        assert isinstance(outcome, UpstreamTimeout)
    else:
        assert outcome == StoredReply(202, b'{"run": 1}')


def test_the_body_counts_by_its_content_without_credentials() -> None:
    same = b'{"user_key": "x", "session_id":"s","user_id": "ann", "messages":[1,{"a":"\\u56fe","b":2}]}'
    assert request(body=same).body_hash == request().body_hash
    for other in (b'{"messages": [1, {"b": 2, "a": "x"}], "session_id": "s"}', b'{"session_id": "s"}'):
        assert request(body=other).body_hash != request().body_hash
    inner = b'{"messages": [{"user_id": "ann"}]}'
    assert request(body=inner).body_hash != request(body=b'{"messages": [{}]}').body_hash


@pytest.mark.parametrize("key", ["", "x" * 256, "a b", "a\x7f", "schlüssel", "a\n"])
def test_a_key_is_visible_ascii(key: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        request(key)
    assert caught.value.field == "Idempotency-Key"
    assert request("!" + "~" * 254).key.startswith("!~")
