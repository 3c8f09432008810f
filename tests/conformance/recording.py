"""Exchanges with a live EverOS, kept one a line under the test that made them, and played back in their order."""

from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import msgspec
from msgspec import Struct

from tests.fakes.everos import body_of

RECORDED = Path(__file__).parent / "everos-recorded.jsonl"


class Exchange(Struct, frozen=True):
    test: str
    path: str
    body: dict[str, Any]
    status: int
    response: dict[str, Any]


@cache
def load() -> dict[str, list[Exchange]]:
    tests: dict[str, list[Exchange]] = defaultdict(list)
    if RECORDED.exists():
        for exchange in msgspec.json.Decoder(Exchange).decode_lines(RECORDED.read_bytes()):
            tests[exchange.test].append(exchange)
    return tests


def save(exchanges: list[Exchange]) -> None:
    """Replace what these tests had recorded; keep the others'."""
    tests: dict[str, list[Exchange]] = load() | {exchange.test: [] for exchange in exchanges}
    for exchange in exchanges:
        tests[exchange.test].append(exchange)
    lines = [exchange for _, recorded in sorted(tests.items()) for exchange in recorded]
    RECORDED.write_bytes(msgspec.json.Encoder().encode_lines(lines))


class Recorder(httpx.AsyncBaseTransport):
    """Passes requests on to the live server and notes what came back, without what changes from run to run."""

    def __init__(self, test: str) -> None:
        self._test = test
        self._network = httpx.AsyncHTTPTransport(limits=httpx.Limits(max_keepalive_connections=0))
        self.exchanges: list[Exchange] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._network.handle_async_request(request)
        content = await response.aread()
        await response.aclose()
        answer = msgspec.json.decode(content)
        if fault := answer.get("error"):
            answer = {"error": {"code": fault["code"], "message": fault["message"]}}
        answer.pop("request_id", None)
        exchange = Exchange(self._test, request.url.path, body_of(request), response.status_code, answer)
        self.exchanges.append(exchange)
        return httpx.Response(response.status_code, content=content)

    async def aclose(self) -> None:
        await self._network.aclose()


class Player(httpx.AsyncBaseTransport):
    """Answers as the live server did, if it is asked the same in the same order."""

    def __init__(self, test: str) -> None:
        self._test = test
        self._left = list(load().get(test, []))

    async def aclose(self) -> None:
        assert not self._left, f"{self._test} asks less than was recorded"

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        assert self._left, f"{self._test} asks more than was recorded; see tests/conformance/conftest.py"
        expected = self._left.pop(0)
        assert (request.url.path, body_of(request)) == (expected.path, expected.body)
        return httpx.Response(expected.status, json=expected.response)
