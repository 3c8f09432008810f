"""A raw TCP server for faults that only a socket can show; an EverOS that remembers, and the gateway before it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from memory_gateway.kit.clock import system_clock
from memory_gateway.storage.migrate import migrate
from memory_gateway.upstream.each_once import EachOnce
from tests.fakes.clock import TurnedClock
from tests.fakes.databases import AnyDatabase, open_test_database
from tests.fakes.everos_memory import EverosMemory
from tests.fakes.house import House, User

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Listen = Callable[[Serve], Awaitable[str]]


@pytest.fixture
async def listen() -> AsyncIterator[Listen]:
    """Starts a server on a free port and gives its URL. ``serve`` has one connection; it is closed afterwards."""
    servers: list[asyncio.Server] = []
    tasks: set[asyncio.Task[None]] = set()

    async def start(serve: Serve) -> str:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            with suppress(asyncio.CancelledError, ConnectionError):  # the end of the test, or of the client
                await serve(reader, writer)
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        servers.append(server)
        return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    yield start
    for server in servers:
        server.close()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[AnyDatabase]:
    database = open_test_database(tmp_path / "gateway.db")
    await migrate(database, system_clock)
    yield database
    await database.close()


@pytest.fixture
def everos() -> EverosMemory:
    return EverosMemory()


@pytest.fixture
def clock() -> TurnedClock:
    """The one by which sent messages are forgotten."""
    return TurnedClock()


@pytest.fixture
async def house(
    database: AnyDatabase, tmp_path: Path, everos: EverosMemory, clock: TurnedClock
) -> AsyncIterator[House]:
    """The gateway before that EverOS, which answers within a second or not at all."""
    house = House(database, tmp_path, EachOnce(everos.upstream(timeout=1.0), database, clock))
    yield house
    await house.close()


@pytest.fixture
async def ann(house: House) -> User:
    return await house.user("ann")
