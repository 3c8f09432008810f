"""Indexing in a child process: it reads the file and writes to the same database; the server only waits.

Run as ``python -m memory_gateway.upstream.indexing`` it takes one `IndexingJob` as a line of JSON on standard input and
answers with one `IndexingAnswer` on standard output. It ends when standard input does, so it never outlives its
parent; a stop of the whole service is not for it, its parent sees to it.
"""

import asyncio
import contextlib
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec

from memory_gateway.engine.schemas import AddReply, AddRequest, Caller, Message
from memory_gateway.kit.errors import MemoryGatewayError, UpstreamRefused, UpstreamUnreachable
from memory_gateway.settings import ENV_PREFIX, Settings

COMMAND = (sys.executable, "-m", "memory_gateway.upstream.indexing")


class IndexingJob(msgspec.Struct, frozen=True):
    """One `add` whose files are too large for the serving process."""

    settings: Settings
    session_id: str
    app_id: str
    project_id: str
    messages: tuple[Message, ...]
    user_id: str | None
    own_files: dict[str, str]


class IndexingAnswer(msgspec.Struct, frozen=True):
    """The reply, or the fault: its status, code and message."""

    reply: AddReply | None = None
    status: int = 500
    code: str = "internal_error"
    message: str = ""


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"cannot send {type(value).__name__} to the child")


def _path(kind: type, value: Any) -> Any:
    if kind is Path:
        return Path(value)
    raise TypeError(f"cannot read {kind.__name__} in the child")


class IndexingChildren:
    """One child at a time. Those of a user who is erased are stopped."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._one = asyncio.Semaphore(1)
        self._at_work: dict[asyncio.subprocess.Process, str | None] = {}

    async def index(self, request: AddRequest, caller: Caller) -> AddReply:
        """Run `add` in a child process.

        `UpstreamRefused` for what it refused or could not do, `UpstreamUnreachable` where it did not start or a signal
        ended it.
        """
        job = IndexingJob(
            settings=self._settings,
            session_id=request.session_id,
            app_id=request.app_id,
            project_id=request.project_id,
            messages=request.messages,
            user_id=caller.user_id,
            own_files={uri: str(path) for uri, path in caller.own_files.items()},
        )
        async with self._one:
            answer = await self._ask_child(msgspec.json.encode(job, enc_hook=_plain), caller.user_id)
        if answer.reply is None:
            raise UpstreamRefused(answer.status, answer.code, answer.message)
        return answer.reply

    async def stop(self, user_id: str) -> None:
        """End the child that works for this user. One that begins later sees for itself that the user is erased."""
        for child in [child for child, owner in self._at_work.items() if owner == user_id]:
            await _end(child)

    async def _ask_child(self, job: bytes, user_id: str | None) -> IndexingAnswer:
        child = await _start_child()
        self._at_work[child] = user_id
        try:
            output = await _exchange(child, job)
        finally:
            del self._at_work[child]
            await _end(child)
        if child.returncode is None or child.returncode < 0:
            raise UpstreamUnreachable("the indexing process was stopped")
        if child.returncode:
            raise UpstreamRefused(500, "INTERNAL_ERROR", "the indexing process ended early")
        return msgspec.json.decode(output, type=IndexingAnswer)


async def _start_child() -> asyncio.subprocess.Process:
    """Its settings, some of them secrets, come by standard input and stand in no environment."""
    try:
        return await asyncio.create_subprocess_exec(
            *COMMAND,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={name: value for name, value in os.environ.items() if not name.startswith(ENV_PREFIX)},
            start_new_session=True,  # a Ctrl-C is for the server, which ends its child in order
        )
    except OSError as error:
        raise UpstreamUnreachable("the indexing process could not be started") from error


async def _end(child: asyncio.subprocess.Process) -> None:
    if child.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.wait()


async def _exchange(child: asyncio.subprocess.Process, job: bytes) -> bytes:
    """Standard input stays open meanwhile: by its end the child knows that this process is gone."""
    source, target = child.stdout, child.stdin
    if source is None or target is None:
        raise EOFError
    with contextlib.suppress(ConnectionError):  # the child ended; how, its return code tells
        target.write(job + b"\n")
        await target.drain()
    output = await source.read()
    await child.wait()
    return output


async def _index(job: IndexingJob) -> AddReply:
    # imported here: the parent imports this module and needs none of it twice
    from memory_gateway.storage.choose import open_database  # noqa: PLC0415
    from memory_gateway.upstream.embedded import open_engine  # noqa: PLC0415
    from memory_gateway.upstream.fence import FencedDatabase  # noqa: PLC0415

    request = AddRequest(job.session_id, job.messages, job.app_id, job.project_id)
    caller = Caller(user_id=job.user_id, own_files={uri: Path(path) for uri, path in job.own_files.items()})
    database = FencedDatabase(open_database(job.settings), job.user_id or "")
    try:
        await database.check()
        async with open_engine(job.settings, database, None, holder=f"indexing:{os.getpid()}") as engine:
            return await engine.add(request, caller)
    finally:
        await database.close()


def _end_with_standard_input() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)


def main() -> None:
    """Answer the job on standard input."""
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, signal.SIG_IGN)
    os.nice(5)  # other requests come first
    line = sys.stdin.buffer.readline()
    threading.Thread(target=_end_with_standard_input, daemon=True).start()
    job = msgspec.json.decode(line, type=IndexingJob, dec_hook=_path)
    try:
        answer = IndexingAnswer(asyncio.run(_index(job)))
    except MemoryGatewayError as error:
        code = error.upstream_code if isinstance(error, UpstreamRefused) else error.code
        answer = IndexingAnswer(None, error.status, code, error.message)
    sys.stdout.buffer.write(msgspec.json.encode(answer))


if __name__ == "__main__":
    main()
