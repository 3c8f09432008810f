"""Child processes that hang, crash, grow or lie, and parents that die."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from memory_gateway.documents import Extraction, Extractor
from memory_gateway.documents.turns import reading_for
from memory_gateway.documents.worker import Children

pytestmark = pytest.mark.slow

STOPPED = Extraction("", "failed", "reading the document failed: it may be damaged or too large")

# The real child around a fake parser: ``text`` is what the document says, and it says what to do.
CHILD = """
import os, pathlib, signal, sys, time
from memory_gateway.documents import child, parsers
def parse(path, mime_type, limit_chars, seconds):
    return parsers.Parsed(say(pathlib.Path(path).read_text()))
def say(text):
    match text:
        case "pid": return str(os.getpid())
        case "session": return str(os.getsid(0))
        case "hang": time.sleep(600)
        case "spin":
            while True: pass
        case "crash": os.kill(os.getpid(), signal.SIGSEGV)
        case "exit": os._exit(0)
        case "grow": return str(len(bytearray(5 << 30)))
        case "raise": raise ValueError("secret /path/to/it")
        case "print":
            os.write(1, b'{"error": "forged"}\\n'); print("noise", flush=True)
        case "environment": return " ".join(sorted(os.environ))
        case "surrogate": return "a\\ud800b\\0c\\r\\nd"
        case "slow": time.sleep(0.3); return str(os.getpid())
    return text
parsers.parse = parse
child._MOST_DOCUMENTS = 4
child.main()
"""
LIES = """
import sys
line = sys.stdin.readline()
sys.stdout.buffer.write(sys.argv[1].encode().decode("unicode_escape").encode()); sys.stdout.flush()
sys.stdin.read()
"""
PARENT = """
import asyncio, pathlib, sys
from memory_gateway.documents import Extractor
from memory_gateway.documents.worker import Children
async def main():
    children = Children([sys.executable, "-c", sys.argv[1]])
    await Extractor(children).extract(pathlib.Path(sys.argv[2]), name="a", mime_type="application/pdf", timeout=600)
asyncio.run(main())
"""

Say = Callable[..., asyncio.Task[Extraction]]


def command(program: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", program, *arguments]


def sayer(extractor: Extractor, folder: Path) -> Say:
    def say(text: str, seconds: float = 30.0) -> asyncio.Task[Extraction]:
        path = folder / f"{text}.pdf"
        path.write_text(text)
        reading = extractor.extract(path, name=path.name, mime_type="application/pdf", timeout=seconds)
        return asyncio.create_task(reading)

    return say


@pytest.mark.parametrize("text", ["hang", "spin"])
async def test_a_parser_that_hangs_is_killed_in_time(tmp_path: Path, text: str) -> None:
    async with Children(command(CHILD)) as children:
        say = sayer(Extractor(children), tmp_path)
        pid = int((await say("pid")).text)
        started = time.monotonic()
        assert await say(text, 0.5) == Extraction("", "failed", "reading the document took longer than 1 s")
        assert time.monotonic() - started < 3
        assert not psutil.pid_exists(pid)
        assert int((await say("pid")).text) != pid


@pytest.mark.parametrize("text", ["crash", "exit"])
async def test_a_child_that_dies_fails_its_document_and_no_other(tmp_path: Path, text: str) -> None:
    async with Children(command(CHILD)) as children:
        say = sayer(Extractor(children), tmp_path)
        assert await say(text) == STOPPED
        assert await say("hello") == Extraction("hello", "success")


async def test_a_resting_child_that_was_killed_is_replaced(tmp_path: Path) -> None:
    async with Children(command(CHILD)) as children:
        say = sayer(Extractor(children), tmp_path)
        victim = psutil.Process(int((await say("pid")).text))
        victim.kill()
        with suppress(psutil.NoSuchProcess):  # it goes between two looks
            while victim.status() != psutil.STATUS_ZOMBIE:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        assert await say("hello") == Extraction("hello", "success")


async def test_a_child_killed_at_work_fails_its_document(tmp_path: Path) -> None:
    async with Children(command(CHILD)) as children:
        say = sayer(Extractor(children), tmp_path)
        pid = int((await say("pid")).text)
        reading = say("hang")
        await asyncio.sleep(0.2)
        psutil.Process(pid).kill()
        assert await asyncio.wait_for(reading, 5) == STOPPED


async def test_a_ctrl_c_for_the_server_does_not_reach_a_child(tmp_path: Path) -> None:
    async with Children(command(CHILD)) as children:
        say = sayer(Extractor(children), tmp_path)
        assert (await say("session")).text == (await say("pid")).text != str(os.getsid(0))


@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGINT])
async def test_a_stop_of_the_whole_service_damages_no_document(tmp_path: Path, name: int) -> None:
    async with Children(command(CHILD)) as children:
        say = sayer(Extractor(children), tmp_path)
        pid = (await say("pid")).text
        reading = say("slow")
        await asyncio.sleep(0.1)
        os.kill(int(pid), name)
        assert await reading == Extraction(pid, "success")


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux")
async def test_memory_is_limited(tmp_path: Path) -> None:
    async with Children(command(CHILD)) as children:
        found = await sayer(Extractor(children), tmp_path)("grow")
    assert found.error == "reading the document takes more memory than is allowed"


async def test_what_a_parser_raises_stays_inside(tmp_path: Path) -> None:
    async with Children(command(CHILD)) as children:
        say = sayer(Extractor(children), tmp_path)
        assert (await say("raise")).error == (
            "the document cannot be read: it is damaged or of a kind that is not supported"
        )


async def test_what_a_library_prints_is_not_taken_for_a_reply(tmp_path: Path) -> None:
    async with Children(command(CHILD)) as children:
        say = sayer(Extractor(children), tmp_path)
        assert await say("print") == Extraction("print", "success")


async def test_text_comes_as_clean_utf_8(tmp_path: Path) -> None:
    async with Children(command(CHILD)) as children:
        assert (await sayer(Extractor(children), tmp_path)("surrogate")).text == "a?bc\nd"


async def test_the_child_knows_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_GATEWAY_ADMIN_KEY", "secret")
    async with Children(command(CHILD)) as children:
        names = (await sayer(Extractor(children), tmp_path)("environment")).text.split()
    assert "PATH" in names
    assert not [name for name in names if name.startswith("MEMORY_GATEWAY")]


@pytest.mark.parametrize(
    "reply",
    [
        "no json\\n",
        '{"error": null, "unread": null, "truncated": false, "size": 999999999999, "last": false}\\n',
        '{"error": null, "unread": null, "truncated": false, "size": -1, "last": false}\\n',
        '{"error": null, "unread": null, "truncated": false, "size": 1, "last": "maybe"}\\nx',
        "x" * 200_000,
    ],
)
async def test_a_child_that_lies_is_not_believed(tmp_path: Path, reply: str) -> None:
    program = LIES.replace("sys.argv[1]", repr(reply)) if len(reply) > 100_000 else LIES
    async with Children(command(program, reply[:1000])) as children:
        assert await sayer(Extractor(children), tmp_path)("hello", 10) == STOPPED


async def test_a_command_that_does_not_exist_fails_the_document(tmp_path: Path) -> None:
    async with Children([str(tmp_path / "nowhere")]) as children:
        assert await sayer(Extractor(children), tmp_path)("hello") == STOPPED


async def test_one_child_is_used_again_until_it_says_it_was_the_last_time(tmp_path: Path) -> None:
    async with Children(command(CHILD)) as children:
        say = sayer(Extractor(children), tmp_path)
        pids = [(await say("pid")).text for _ in range(5)]
    assert len(set(pids[:4])) == 1
    assert pids[4] != pids[0]


async def test_no_more_children_than_allowed(tmp_path: Path) -> None:
    async with Children(command(CHILD), size=2) as children:
        say = sayer(Extractor(children), tmp_path)
        said = []
        for user_id in ("ann", "anna", "a_b"):
            with reading_for(user_id):
                said += [say("slow") for _ in range(2)]
        found = await asyncio.gather(*said)
    assert len({one.text for one in found}) == 2


async def test_a_users_slow_documents_leave_a_child_for_others(tmp_path: Path) -> None:
    async with Children(command(CHILD), size=2) as children:
        say = sayer(Extractor(children), tmp_path)
        with reading_for("ann"):
            hanging = [say("hang") for _ in range(3)]
        with reading_for("anna"):
            assert await asyncio.wait_for(say("hello"), 20) == Extraction("hello", "success")
        for one in hanging:
            one.cancel()
        await asyncio.gather(*hanging, return_exceptions=True)


async def test_a_child_that_rests_long_enough_goes(tmp_path: Path) -> None:
    async with Children(command(CHILD), idle_seconds=0.2) as children:
        say = sayer(Extractor(children), tmp_path)
        pid = int((await say("pid")).text)
        assert psutil.pid_exists(pid)
        await asyncio.sleep(0.6)
        assert not psutil.pid_exists(pid)
        assert await say("hello") == Extraction("hello", "success")


async def test_closing_lets_all_go(tmp_path: Path) -> None:
    extractor = Extractor(Children(command(CHILD)))
    pid = int((await sayer(extractor, tmp_path)("pid")).text)
    await extractor.close()
    assert not psutil.pid_exists(pid)


async def test_a_caller_who_goes_away_takes_the_child_along(tmp_path: Path) -> None:
    async with Children(command(CHILD)) as children:
        say = sayer(Extractor(children), tmp_path)
        pid = int((await say("pid")).text)
        reading = say("hang")
        await asyncio.sleep(0.2)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert not psutil.pid_exists(pid)


@pytest.mark.parametrize("text", ["hang", "spin"])
async def test_a_child_ends_with_its_killed_parent(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.pdf"
    path.write_text(text)
    parent = psutil.Popen(command(PARENT, CHILD, str(path)), env=dict(os.environ), stderr=subprocess.DEVNULL)
    try:
        async with asyncio.timeout(20):
            while not (found := parent.children()):
                await asyncio.sleep(0.05)
            await asyncio.sleep(1.0)
    finally:
        parent.kill()
        parent.wait()
    _, alive = psutil.wait_procs(found, timeout=5)
    assert alive == []
