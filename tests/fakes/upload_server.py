"""A real server for uploads: prints one line of JSON with its port and a user's headers, then serves until killed.

Its files lie in the folder, or in the bucket at the endpoint where these are given too.
"""

import asyncio
import json
import socket
import sys
from pathlib import Path

import uvicorn

from memory_gateway.blobs.choose import open_blobs
from memory_gateway.kit.clock import system_clock
from memory_gateway.settings import Settings
from memory_gateway.storage.migrate import migrate
from memory_gateway.storage.sqlite import SqliteDatabase
from tests.fakes.front_door import FrontDoor
from tests.fakes.process import Process

MIB = 1 << 20


def settings(folder: Path, bucket: str | None = None, endpoint: str | None = None) -> Settings:
    if bucket is None:
        return Settings(data_dir=folder)
    return Settings(
        data_dir=folder,
        blob_url=f"s3://{bucket}",
        s3_endpoint=endpoint,
        s3_region="us-east-1",
        s3_access_key_id="AKIAEXAMPLE",
        s3_secret_access_key="secret",
    )


async def main(settings: Settings) -> None:
    folder = settings.data_dir
    database = SqliteDatabase(folder / "gateway.db")
    await migrate(database, system_clock)
    front = FrontDoor(database, folder, blobs=open_blobs(settings))
    process = Process(front, "one", front.upstream, max_upload_bytes=50 * MIB)
    listening = socket.create_server(("127.0.0.1", 0))
    print(json.dumps({"port": listening.getsockname()[1], "headers": await front.headers_of("ann")}), flush=True)
    await uvicorn.Server(uvicorn.Config(process.app(), log_level="warning")).serve([listening])


if __name__ == "__main__":
    asyncio.run(main(settings(Path(sys.argv[1]), *sys.argv[2:])))
