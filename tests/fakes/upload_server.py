"""A real server for uploads: prints one line of JSON with its port and a user's headers, then serves until killed."""

import asyncio
import json
import socket
import sys
from pathlib import Path

import uvicorn

from memory_gateway.kit.clock import system_clock
from memory_gateway.storage.migrate import migrate
from memory_gateway.storage.sqlite import SqliteDatabase
from tests.fakes.front_door import FrontDoor
from tests.fakes.process import Process

MIB = 1 << 20


async def main(folder: Path) -> None:
    database = SqliteDatabase(folder / "gateway.db")
    await migrate(database, system_clock)
    front = FrontDoor(database, folder)
    process = Process(front, "one", front.upstream, max_upload_bytes=50 * MIB)
    listening = socket.create_server(("127.0.0.1", 0))
    print(json.dumps({"port": listening.getsockname()[1], "headers": await front.headers_of("ann")}), flush=True)
    await uvicorn.Server(uvicorn.Config(process.app(), log_level="warning")).serve([listening])


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
