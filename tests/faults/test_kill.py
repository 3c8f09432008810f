"""What was acknowledged survives `kill -9`."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from memory_gateway.storage.sqlite import SqliteDatabase

WRITER = """
import asyncio, sys
from pathlib import Path
from memory_gateway.storage.sqlite import SqliteDatabase

async def main():
    database = SqliteDatabase(Path(sys.argv[1]))
    async def create(transaction):
        await transaction.execute("CREATE TABLE note (text TEXT)")
    await database.write(create)
    async def writer(name):
        for number in range(100_000):
            text = f"{name}-{number}"
            async def work(transaction):
                await transaction.execute("INSERT INTO note (text) VALUES (:text)", {"text": text})
            await database.write(work)
            print(text, flush=True)
    await asyncio.gather(*(writer(name) for name in range(16)))

asyncio.run(main())
"""


async def test_every_acknowledged_write_survives_a_kill_under_load(tmp_path: Path) -> None:
    path = tmp_path / "killed.db"
    child = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    acknowledged = [child.stdout.readline().strip() for _ in range(500)]
    os.kill(child.pid, signal.SIGKILL)
    acknowledged += child.stdout.read().split("\n")[:-1]
    child.stdout.close()
    child.wait()

    database = SqliteDatabase(path)
    stored = {text for (text,) in await database.fetch("SELECT text FROM note")}
    check = await database.fetch("PRAGMA integrity_check")
    await database.close()
    assert len(acknowledged) >= 500
    assert set(acknowledged) <= stored
    assert check == [("ok",)]
