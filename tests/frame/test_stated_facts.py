"""The demo's second act holds, told to the app itself."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from memory_gateway.demo.stated_facts import StatedFacts
from memory_gateway.demo.teller import Teller
from tests.fakes.memory_service import ADDRESS, open_house


class Bridge(httpx.BaseTransport):
    """Takes the requests of a thread to an app on the event loop."""

    def __init__(self, client: httpx.AsyncClient, loop: asyncio.AbstractEventLoop) -> None:
        self._client = client
        self._loop = loop

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        sending = self._client.request(
            request.method, request.url, headers=request.headers, content=request.read() or None
        )
        reply = asyncio.run_coroutine_threadsafe(sending, self._loop).result()
        return httpx.Response(reply.status_code, headers=reply.headers, content=reply.content)


@contextmanager
def act(client: httpx.AsyncClient) -> Iterator[Teller]:
    with Teller(ADDRESS, Bridge(client, asyncio.get_running_loop())) as teller:
        yield teller


async def test_the_second_act_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with open_house(tmp_path) as house, house.client() as client:
        with act(client) as teller:
            await asyncio.to_thread(StatedFacts(teller).tell)
    assert teller.failures == []
    assert teller.calls > 25
    assert "门禁码是4477" in capsys.readouterr().out
