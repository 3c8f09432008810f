"""The child process that indexes large files: what it answers, who may end it, and that it ends with its parent."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psutil
import pytest
from msgspec import structs

from memory_gateway.engine.schemas import AddReply, AddRequest, Caller, ContentItem, Message
from memory_gateway.kit.clock import system_clock
from memory_gateway.kit.errors import UpstreamRefused, UpstreamUnreachable
from memory_gateway.settings import Settings
from memory_gateway.storage.choose import open_database
from memory_gateway.storage.migrate import migrate
from memory_gateway.storage.port import Database
from memory_gateway.upstream import indexing
from memory_gateway.upstream.embedded import EmbeddedUpstream, open_engine
from memory_gateway.upstream.indexing import IndexingChildren

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
asyncio.run(indexing.IndexingChildren(settings).index(AddRequest("60", (Message("ann", "user", 1, "x"),)), Caller()))
"""

# The real child, which after its first look at the user waits for a file before it goes on.
LATE_CHILD = """
import asyncio, os, pathlib, sys
from memory_gateway.upstream import fence, indexing
folder, look = pathlib.Path(sys.argv[1]), fence.FencedDatabase.check
async def check(database):
    await look(database)
    (folder / "begun.new").write_text(str(os.getpid()))
    (folder / "begun.new").rename(folder / "begun")
    while not (folder / "go").exists():
        await asyncio.sleep(0.01)
fence.FencedDatabase.check = check
indexing.main()
"""
ADD_USER = "INSERT INTO users (user_id, folded_id, created_at) VALUES (:user_id, :user_id, '')"
MARK_ERASED = "UPDATE users SET erased_at = '' WHERE user_id = :user_id"

Begin = Callable[[float], asyncio.Task[AddReply]]


async def begun(folder: Path) -> psutil.Process:
    """The child, once it is at work."""
    async with asyncio.timeout(20):
        while not (folder / "begun").exists():
            await asyncio.sleep(0.02)
    return psutil.Process(int((folder / "begun").read_text()))


@pytest.fixture
def begin(children: IndexingChildren, monkeypatch: pytest.MonkeyPatch) -> Begin:
    """Have a child work for so many seconds."""
    monkeypatch.setattr(indexing, "COMMAND", (sys.executable, "-c", CHILD))

    def begin(seconds: float) -> asyncio.Task[AddReply]:
        request = AddRequest(str(seconds), (Message("ann", "user", 1, "x"),))
        return asyncio.create_task(children.index(request, Caller(user_id="ann")))

    return begin


@pytest.fixture
def children(tmp_path: Path) -> IndexingChildren:
    return IndexingChildren(Settings(data_dir=tmp_path))


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = open_database(Settings(data_dir=tmp_path))
    await migrate(database, system_clock)
    for user_id in ("ann", "anna"):
        await execute(database, ADD_USER, user_id)
    yield database
    await database.close()


async def execute(database: Database, statement: str, user_id: str) -> None:
    await database.write(lambda transaction: transaction.execute(statement, {"user_id": user_id}))


def notes_of(user_id: str, folder: Path) -> tuple[AddRequest, Caller]:
    path = folder / "notes.txt"
    path.write_text("The code of the stand-in host is 4471.")
    message = Message(user_id, "user", 1_780_000_000_000, [ContentItem("doc", uri=path.as_uri(), name="notes.txt")])
    caller = Caller(user_id=user_id, own_files={path.as_uri(): path})
    return AddRequest(f"resource:{user_id}:1", (message,)), caller


async def test_a_file_is_read_and_its_words_are_in_the_database(
    tmp_path: Path, children: IndexingChildren, database: Database
) -> None:
    assert await children.index(*notes_of("ann", tmp_path)) == AddReply(1, "accumulated")
    [(text,)] = await database.fetch("SELECT text FROM engine_turns")
    assert "4471" in text


async def test_the_settings_stand_in_no_environment_and_in_no_list_of_processes(
    begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_GATEWAY_DATABASE_URL", "postgresql://keeper:swordfish@127.0.0.1/memory")
    indexed = begin(1.0)
    child = await begun(tmp_path)
    assert child.environ()["PATH"] == os.environ["PATH"]
    assert "swordfish" not in f"{child.environ()} {child.cmdline()}"
    await indexed


async def test_an_erasure_ends_the_users_child_and_nobody_elses(
    begin: Begin, tmp_path: Path, children: IndexingChildren
) -> None:
    indexed = begin(60)
    child = await begun(tmp_path)
    for look_alike in ("anna", "Ann", "an", "", "%"):
        await children.stop(look_alike)
    assert child.is_running()
    await children.stop("ann")
    assert not child.is_running()
    with pytest.raises(UpstreamUnreachable, match="the indexing process was stopped"):
        await indexed


async def test_the_upstream_erases_nothing_before_the_users_child_has_ended(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "COMMAND", (sys.executable, "-c", CHILD))
    settings = Settings(data_dir=tmp_path, inline_index_bytes=0)
    async with open_engine(settings, database, None, holder="test") as engine:
        upstream = EmbeddedUpstream(engine, settings)
        request, caller = notes_of("ann", tmp_path)
        indexed = asyncio.create_task(upstream.add(structs.replace(request, session_id="60"), caller))
        child = await begun(tmp_path)
        running: list[bool] = []

        async def erase(user_id: str) -> None:
            running.append(child.is_running())

        monkeypatch.setattr(engine, "erase", erase)
        await upstream.erase("ann")
        assert running == [False]
        with pytest.raises(UpstreamUnreachable):
            await indexed


async def test_a_child_that_begins_after_the_mark_does_no_work(
    tmp_path: Path, children: IndexingChildren, database: Database
) -> None:
    await execute(database, MARK_ERASED, "ann")
    with pytest.raises(UpstreamRefused) as refused:
        await children.index(*notes_of("ann", tmp_path))
    assert refused.value.status == 404
    assert await children.index(*notes_of("anna", tmp_path)) == AddReply(1, "accumulated")
    assert await database.fetch("SELECT user_id FROM engine_spaces") == [("anna",)]


async def test_no_write_of_a_child_lands_after_the_mark(
    tmp_path: Path, children: IndexingChildren, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the child is another server process's, which the erasure cannot end."""
    monkeypatch.setattr(indexing, "COMMAND", (sys.executable, "-c", LATE_CHILD, str(tmp_path)))
    indexed = asyncio.create_task(children.index(*notes_of("ann", tmp_path)))
    await begun(tmp_path)
    await execute(database, MARK_ERASED, "ann")
    (tmp_path / "go").touch()
    with pytest.raises(UpstreamRefused):
        await indexed
    for table in ("engine_spaces", "engine_turns", "engine_messages", "engine_postings"):
        assert await database.fetch(f"SELECT * FROM {table}") == []


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
