"""An HTTP load generator that no server here outruns: keep-alive connections on raw sockets, in a process of its own.

`measure` starts ``python -m benchmarks.load`` with a `Plan` on its standard input and reads a `Result` from its output.
"""

import asyncio
import statistics
import subprocess
import sys
import time
from pathlib import Path

import httptools
import msgspec

COUNTER = b"########"  # in a request: replaced by a number that no other request of the plan carries
ROOT = Path(__file__).parent.parent


class Plan(msgspec.Struct, frozen=True):
    """The same request over and over on each of the connections, for some seconds after a warm-up.

    ``requests``, where given, are sent in turn in its place, each once.
    """

    port: int
    request: bytes
    connections: int
    seconds: float
    warmup: float = 0.5
    first_number: int = 0
    requests: tuple[bytes, ...] = ()


class Result(msgspec.Struct, frozen=True):
    """``statuses`` counts the measured replies by status code; latencies in milliseconds."""

    per_second: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    statuses: dict[int, int]
    next_number: int

    def require(self, *expected: int) -> "Result":
        """This result, unless a reply had another status."""
        if self.statuses.keys() - set(expected):
            raise AssertionError(f"unexpected replies: {self.statuses}")
        return self


def request_bytes(method: str, path: str, headers: dict[str, str], body: bytes = b"") -> bytes:
    """An HTTP/1.1 request as it goes over the wire."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1"]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join((*lines, "", "")).encode() + body


def measure(plan: Plan) -> Result:
    """Run the plan in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.load"],
        input=msgspec.json.encode(plan),
        stdout=subprocess.PIPE,
        cwd=ROOT,
        check=True,
    )
    return msgspec.json.decode(done.stdout, type=Result)


class _Run:
    """What the connections share: the number of the next request, and what came back in the measured time."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.number = plan.first_number
        self.measuring = False
        self.stopped = False
        self.latencies: list[float] = []
        self.statuses: dict[int, int] = {}

    def next_request(self) -> bytes:
        self.number += 1
        if self.plan.requests:
            return self.plan.requests[self.number - self.plan.first_number - 1]
        return self.plan.request.replace(COUNTER, b"%08d" % self.number)

    def record(self, status: int, seconds: float) -> None:
        if self.measuring:
            self.latencies.append(seconds)
            self.statuses[status] = self.statuses.get(status, 0) + 1


class _Connection(asyncio.Protocol):
    """Sends a request, reads the reply, sends the next."""

    def __init__(self, run: _Run) -> None:
        self._run = run
        self._parser = httptools.HttpResponseParser(self)
        self._sent_at = 0.0
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        self._run.record(self._parser.get_status_code(), time.perf_counter() - self._sent_at)
        self._parser = httptools.HttpResponseParser(self)
        if not self._run.stopped:
            self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._run.stopped:
            raise ConnectionError("the server closed the connection") from exc

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _send(self) -> None:
        assert self._transport is not None
        self._sent_at = time.perf_counter()
        self._transport.write(self._run.next_request())


async def run_plan(plan: Plan) -> Result:
    """Load the server from this process."""
    run = _Run(plan)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_end)
    connections = [
        (await loop.create_connection(lambda: _Connection(run), "127.0.0.1", plan.port))[1]
        for _ in range(plan.connections)
    ]
    await asyncio.sleep(plan.warmup)
    run.measuring, started = True, time.perf_counter()
    await asyncio.sleep(plan.seconds)
    run.measuring, run.stopped = False, True
    elapsed = time.perf_counter() - started
    for connection in connections:
        connection.close()
    return _result(run, elapsed)


def _end(_loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    sys.exit(f"load generator: {context.get('exception') or context['message']}")


def _result(run: _Run, elapsed: float) -> Result:
    if len(run.latencies) < 2:
        raise AssertionError("the server answered fewer than two requests")
    latencies = sorted(1000 * seconds for seconds in run.latencies)
    return Result(
        per_second=len(latencies) / elapsed,
        p50_ms=statistics.median(latencies),
        p95_ms=latencies[int(len(latencies) * 0.95)],
        p99_ms=latencies[int(len(latencies) * 0.99)],
        statuses=run.statuses,
        next_number=run.number,
    )


def main() -> None:
    plan = msgspec.json.decode(sys.stdin.buffer.read(), type=Plan)
    sys.stdout.buffer.write(msgspec.json.encode(asyncio.run(run_plan(plan))))


if __name__ == "__main__":
    main()
