"""A stop while PostgreSQL is away ends in time, and says in one line what could not be written."""

import asyncio
import os
import signal
from pathlib import Path

import psutil
import pytest

from memory_gateway.demo.child import RunningServer
from tests.fakes.databases import TEMPLATE, database_url
from tests.fakes.gateways import Clients, running_gateways
from tests.fakes.postgres import running_server

pytestmark = pytest.mark.slow


async def live(gateways: list[RunningServer]) -> None:
    """Ends with a read that is not counted yet."""
    async with Clients(gateways, 4) as clients:
        ann = await clients.register("ann")
        assert (await ann.add(clients.gateway(), "1", [ann.message("green tea", 1_780_000_000_000)])).is_success
        reply = await clients.service().post("/memories", json={"user_id": "ann", "content": "Ann likes tea."})
        assert (await clients.service().get(f"/memories/{reply.json()['memory']['id']}")).is_success


def test_a_stop_while_the_server_is_away(tmp_path: Path) -> None:
    with running_server() as server:
        with running_gateways(tmp_path, database_url(server.get_uri(), TEMPLATE), count=1) as [gateway]:
            asyncio.run(live([gateway]))
            server.stop()
            os.kill(gateway.pid, signal.SIGTERM)
            assert psutil.Process(gateway.pid).wait(30) == 1
            lines = gateway.log.read_text("utf-8").splitlines()
            assert lines[-1] == "Error: the database cannot serve this request now"
            assert not any(line.startswith("Traceback") for line in lines)
        server.start()
