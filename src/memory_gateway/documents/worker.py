"""The parent's side of the child processes that read documents."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import msgspec

from memory_gateway.documents.child import Reply, Request
from memory_gateway.documents.turns import Turns

COMMAND = (sys.executable, "-P", "-m", "memory_gateway.documents.child")
CHILDREN = 2
IDLE_SECONDS = 60.0

STOPPED = "reading the document failed: it may be damaged or too large"

# The child gets no secrets of the server's environment.
_PASSED_ON = ("PATH", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TMPDIR", "HOME")
_ONE_THREAD = {"TOKIO_WORKER_THREADS": "1", "RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
_MOST_BYTES_A_CHARACTER = 4


class ChildStopped(Exception):
    """The child ended, or answered nonsense, in the middle of a document."""


class Child:
    """One process, one document at a time. After an exception or a reply with ``last`` it must be killed."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, command: Sequence[str]) -> Self:
        """Raises `ChildStopped` where the machine has no room for another process."""
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env=environment | _ONE_THREAD,
                start_new_session=True,  # a Ctrl-C is for the server; it lets its children go in order
            )
        except OSError as error:
            raise ChildStopped from error
        return cls(process)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    async def ask(self, request: Request) -> tuple[Reply, str]:
        """The reply and the text. Raises `ChildStopped`."""
        try:
            return await self._exchange(request)
        except (OSError, EOFError, ValueError, msgspec.MsgspecError) as error:
            raise ChildStopped from error

    async def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()

    async def _exchange(self, request: Request) -> tuple[Reply, str]:
        source, target = self._process.stdout, self._process.stdin
        if source is None or target is None:
            raise EOFError
        target.write(msgspec.json.encode(request) + b"\n")
        await target.drain()
        reply = msgspec.json.decode(await source.readline(), type=Reply)
        if not 0 <= reply.size <= _MOST_BYTES_A_CHARACTER * request.limit_chars:
            raise ValueError("the child sends more than it was asked for")
        return reply, (await source.readexactly(reply.size)).decode()


class Children:
    """Up to ``size`` children, taken in turns by users; one that rests longer than ``idle_seconds`` is let go."""

    def __init__(self, command: Sequence[str] = COMMAND, size: int = CHILDREN, idle_seconds: float = IDLE_SECONDS):
        self._command = command
        self._turns = Turns(size)
        self._resting: dict[Child, asyncio.TimerHandle] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._idle_seconds = idle_seconds

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def ask(self, request: Request, user_id: str) -> tuple[Reply, str]:
        """Waits for this user's turn, then as long as the request says. Raises `ChildStopped` and `TimeoutError`."""
        async with self._turns.place(user_id):
            child = self._wake() or await Child.start(self._command)
            keep = False
            try:
                async with asyncio.timeout(request.seconds):
                    reply, text = await child.ask(request)
                keep = not reply.last
                return reply, text
            finally:
                if keep:
                    self._rest(child)
                else:
                    await child.kill()

    async def close(self) -> None:
        """Let all go that rest. Those at work go with their documents."""
        for child in list(self._resting):
            self._leave(child)
        await asyncio.gather(*self._leaving)

    def _wake(self) -> Child | None:
        while self._resting:
            child, timer = self._resting.popitem()
            timer.cancel()
            if child.alive:
                return child
        return None

    def _rest(self, child: Child) -> None:
        self._resting[child] = asyncio.get_running_loop().call_later(self._idle_seconds, self._leave, child)

    def _leave(self, child: Child) -> None:
        self._resting.pop(child).cancel()
        task = asyncio.get_running_loop().create_task(child.kill())
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)
