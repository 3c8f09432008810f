"""The benchmarks measure what they say."""

import asyncio
from collections import Counter

import pytest

from benchmarks.corpus import Corpus, vocabulary
from benchmarks.load import COUNTER, Plan, Result, request_bytes, run_plan
from benchmarks.report import print_ratio, print_table


class Echo(asyncio.Protocol):
    """Answers each request and remembers its body."""

    bodies: Counter[bytes]

    def __init__(self, bodies: Counter[bytes]) -> None:
        self.bodies = bodies
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        assert self.transport is not None
        self.bodies[data.partition(b"\r\n\r\n")[2]] += 1
        self.transport.write(b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}")


async def test_the_load_generator_sends_each_number_once_and_counts_every_reply() -> None:
    bodies: Counter[bytes] = Counter()
    server = await asyncio.get_running_loop().create_server(lambda: Echo(bodies), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    request = request_bytes("POST", "/users", {"X-Admin-Key": "k"}, b'{"user_id":"u' + COUNTER + b'"}')
    result = await run_plan(Plan(port, request, connections=3, seconds=0.2, warmup=0.05, first_number=70))
    server.close()
    assert b'{"user_id":"u00000071"}' in bodies
    assert set(bodies.values()) == {1}
    assert set(result.statuses) == {201}
    assert 0.15 * result.per_second < result.statuses[201] <= len(bodies)
    assert 0 < result.p50_ms <= result.p99_ms
    assert 0 <= result.next_number - 70 - len(bodies) <= 3  # those that were on the way at the end


def test_an_unexpected_status_ends_a_benchmark() -> None:
    result = Result(per_second=1, p50_ms=1, p95_ms=1, p99_ms=1, statuses={200: 9, 500: 1}, next_number=0)
    with pytest.raises(AssertionError, match="500"):
        result.require(200)


def test_a_request_is_written_as_it_goes_over_the_wire() -> None:
    assert (
        request_bytes("GET", "/a", {"X-User-ID": "lin"})
        == b"GET /a HTTP/1.1\r\nHost: 127.0.0.1\r\nX-User-ID: lin\r\n\r\n"
    )


def test_the_corpus_is_the_same_each_time_and_bilingual() -> None:
    words = vocabulary(2_000)
    first, again, other = (list(Corpus(words, seed).sessions("ann", 150)) for seed in (1, 1, 2))
    assert first == again != other
    assert [(session_id, len(messages)) for session_id, messages in first] == [("chat:0", 100), ("chat:1", 50)]
    text = str(first[0][1][0].content)
    assert any("一" <= character <= "鿿" for character in text)
    assert any("a" <= character <= "z" for character in text)


def test_tables_line_up_in_both_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("Title", ("name", "ms"), [("年糕", "1.50"), ("ab", "10.25")])
    print_ratio("a against b", 2.5, "at least 2")
    assert capsys.readouterr().out.splitlines() == [
        "",
        "Title",
        "  name     ms",
        "  ----  -----",
        "  年糕   1.50",
        "  ab    10.25",
        "  => a against b: 2.50 (goal: at least 2)",
    ]
