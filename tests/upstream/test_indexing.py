"""The child process that indexes large files: what it answers, who may end it, and that it ends with its parent."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from memory_gateway.engine.schemas import AddReply, AddRequest, Caller, ContentItem, Message
from memory_gateway.kit.clock import system_clock
from memory_gateway.kit.errors import UpstreamRefused, UpstreamUnreachable
from memory_gateway.settings import Settings
from memory_gateway.storage.choose import open_database
from memory_gateway.storage.migrate import migrate
from memory_gateway.upstream import indexing
from memory_gateway.upstream.indexing import index_in_child

pytestmark = pytest.mark.slow

# The real child, that says its process id and works a while instead of indexing.
CHILD = """
import asyncio, os, pathlib
from memory_gateway.engine.schemas import AddReply
from memory_gateway.upstream import indexing
async def index(job):
    begun = pathlib.Path(job.settings.data_dir, "begun")
    begun.with_suffix(".new").write_text(str(os.getpid()))
    begun.with_suffix(".new").rename(begun)
    await asyncio.sleep(float(job.session_id))
    return AddReply(1, "accumulated")
indexing._index = index
indexing.main()
"""
PARENT = """
import asyncio, pathlib, sys
from memory_gateway.engine.schemas import AddRequest, Caller, Message
from memory_gateway.settings import Settings
from memory_gateway.upstream import indexing
indexing.COMMAND = (sys.executable, "-c", sys.argv[1])
settings = Settings(data_dir=pathlib.Path(sys.argv[2]))
asyncio.run(indexing.index_in_child(settings, AddRequest("60", (Message("ann", "user", 1, "x"),)), Caller()))
"""

Begin = Callable[[float], asyncio.Task[AddReply]]


async def begun(folder: Path) -> psutil.Process:
    """The child, once it is at work."""
    async with asyncio.timeout(20):
        while not (folder / "begun").exists():
            await asyncio.sleep(0.02)
    return psutil.Process(int((folder / "begun").read_text()))


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Begin:
    """Have a child work for so many seconds."""
    monkeypatch.setattr(indexing, "COMMAND", (sys.executable, "-c", CHILD))

    def begin(seconds: float) -> asyncio.Task[AddReply]:
        request = AddRequest(str(seconds), (Message("ann", "user", 1, "x"),))
        return asyncio.create_task(index_in_child(Settings(data_dir=tmp_path), request, Caller(user_id="ann")))

    return begin


async def test_a_file_is_read_and_its_words_are_in_the_database(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "data")
    database = open_database(settings)
    await migrate(database, system_clock)
    path = tmp_path / "notes.txt"
    path.write_text("The code of the stand-in host is 4471.")
    message = Message("ann", "user", 1_780_000_000_000, [ContentItem("doc", uri=path.as_uri(), name="notes.txt")])
    caller = Caller(user_id="ann", own_files={path.as_uri(): path})
    reply = await index_in_child(settings, AddRequest("resource:ann:1", (message,)), caller)
    assert reply == AddReply(1, "accumulated")
    [(text,)] = await database.fetch("SELECT text FROM engine_turns")
    assert "4471" in text
    await database.close()


@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGINT])
async def test_a_stop_of_the_whole_service_is_not_for_the_child(begin: Begin, tmp_path: Path, name: int) -> None:
    indexed = begin(1.0)
    child = await begun(tmp_path)
    assert os.getsid(child.pid) == child.pid != os.getsid(0)
    child.send_signal(name)
    assert await indexed == AddReply(1, "accumulated")


@pytest.mark.parametrize("name", [signal.SIGKILL, signal.SIGSEGV])
async def test_a_child_that_a_signal_ended_may_be_tried_again(begin: Begin, tmp_path: Path, name: int) -> None:
    indexed = begin(60)
    (await begun(tmp_path)).send_signal(name)
    with pytest.raises(UpstreamUnreachable, match="the indexing process was stopped"):
        await indexed


async def test_a_child_that_ends_by_itself_has_refused(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "COMMAND", (sys.executable, "-c", "raise SystemExit(3)"))
    with pytest.raises(UpstreamRefused, match="the indexing process ended early"):
        await begin(0)


async def test_a_child_that_cannot_start_may_be_tried_again(
    begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "COMMAND", (str(tmp_path / "nowhere"),))
    with pytest.raises(UpstreamUnreachable, match="could not be started"):
        await begin(0)


async def test_a_caller_who_goes_away_takes_the_child_along(begin: Begin, tmp_path: Path) -> None:
    indexed = begin(60)
    child = await begun(tmp_path)
    indexed.cancel()
    with pytest.raises(asyncio.CancelledError):
        await indexed
    assert not child.is_running()


async def test_a_child_ends_with_its_killed_parent(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PARENT, CHILD, str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as parent:
        try:
            child = await begun(tmp_path)
        finally:
            parent.kill()
    _, alive = psutil.wait_procs([child], timeout=5)
    assert alive == []
