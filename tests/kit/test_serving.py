import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from memory_gateway.kit.serving import listen, serve_apps

TWO_WORKERS = """
import os, signal
from memory_gateway.kit.serving import run_workers

def work():
    os.write(1, b"%d\\n" % os.getpid())
    signal.pause()

if __name__ == "__main__":
    run_workers(2, work, ())
"""


async def silent(scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]) -> None:
    """An app that takes part in the lifespan and answers nothing."""
    while (await receive())["type"] != "lifespan.shutdown":
        await send({"type": "lifespan.startup.complete"})
    await send({"type": "lifespan.shutdown.complete"})


async def test_a_face_that_ends_by_itself_takes_the_other_along(monkeypatch: pytest.MonkeyPatch) -> None:
    faces: list[uvicorn.Server] = []
    main_loop = uvicorn.Server.main_loop

    async def first_ends(server: uvicorn.Server) -> None:
        faces.append(server)
        if server is not faces[0]:
            await main_loop(server)

    monkeypatch.setattr(uvicorn.Server, "main_loop", first_ends)
    async with asyncio.timeout(10):
        await serve_apps([(silent, listen("127.0.0.1", 0)), (silent, listen("127.0.0.1", 0))])
    assert len(faces) == 2


async def whose(scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]) -> None:
    """Answers with the client's address."""
    if scope["type"] == "lifespan":
        await silent(scope, receive, send)
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": scope["client"][0].encode()})


@pytest.mark.parametrize(
    ("trusted", "seen"), [((), "127.0.0.1"), (("10.0.0.0/8",), "127.0.0.1"), (("127.0.0.0/8",), "192.0.2.9")]
)
async def test_only_a_trusted_proxy_says_whose_a_request_is(trusted: tuple[str, ...], seen: str) -> None:
    listener = listen("127.0.0.1", 0)
    serving = asyncio.create_task(serve_apps([(whose, listener)], trusted))
    async with httpx.AsyncClient(trust_env=False) as client:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        assert (await client.get(url, headers={"X-Forwarded-For": "192.0.2.9"})).text == seen
    os.kill(os.getpid(), signal.SIGTERM)
    await serving


@pytest.mark.parametrize("stopping", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_their_supervisor_however_it_ends(stopping: signal.Signals, tmp_path: Path) -> None:
    script = tmp_path / "supervise.py"
    script.write_text(TWO_WORKERS)
    supervisor = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    assert supervisor.stdout is not None
    workers = [int(supervisor.stdout.readline()) for _ in range(2)]
    try:
        supervisor.send_signal(stopping)
        # the pipe ends when the last who could write to it has ended
        assert supervisor.communicate(timeout=20)[0] == ""
    finally:
        for worker in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
