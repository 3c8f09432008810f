"""A big upload over a real server: it streams, and nobody else waits for it."""

import hashlib
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import psutil
import pytest

from tests.fakes.s3 import Bucket

pytestmark = pytest.mark.slow

MIB = 1 << 20
ROOT = Path(__file__).parents[3]
HEAD = b'--edge\r\nContent-Disposition: form-data; name="file"; filename="big.bin"\r\n\r\n'
TAIL = b"\r\n--edge--\r\n"
PIECE = bytes(range(256)) * 256


class Server(NamedTuple):
    process: psutil.Process
    client: httpx.Client
    folder: Path
    bucket: Bucket | None


@pytest.fixture(params=["folder", "s3"])
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Server]:
    command = [sys.executable, "-m", "tests.fakes.upload_server", str(tmp_path)]
    bucket: Bucket | None = request.getfixturevalue("bucket") if request.param == "s3" else None
    if bucket is not None:
        command += [bucket.name, bucket.server.endpoint]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        started = json.loads(process.stdout.readline())
        base_url = f"http://127.0.0.1:{started['port']}"
        with httpx.Client(base_url=base_url, headers=started["headers"], timeout=60) as client:
            yield Server(psutil.Process(process.pid), client, tmp_path, bucket)
        process.kill()


def content(size: int) -> Iterator[bytes]:
    yield HEAD
    for _ in range(size // len(PIECE)):
        yield PIECE
    yield TAIL


def upload(server: Server, size: int, *, chunked: bool = False) -> httpx.Response:
    headers = {"Content-Type": "multipart/form-data; boundary=edge"}
    if not chunked:
        headers["Content-Length"] = str(len(HEAD) + size + len(TAIL))
    return server.client.post("/resources", content=content(size), headers=headers)


def repeatedly(act: Callable[[], float]) -> tuple[threading.Event, list[float], threading.Thread]:
    stop, seen = threading.Event(), list[float]()

    def run() -> None:
        while not stop.is_set():
            seen.append(act())
            time.sleep(0.005)

    thread = threading.Thread(target=run)
    thread.start()
    return stop, seen, thread


def test_49_mib_stream_through_in_little_memory_while_others_are_served(server: Server) -> None:
    upload(server, MIB)
    before = server.process.memory_info().rss

    def ping() -> float:
        start = time.perf_counter()
        assert server.client.get("/resources").status_code == 200
        return time.perf_counter() - start

    watches = [repeatedly(lambda: server.process.memory_info().rss), repeatedly(ping)]
    reply = upload(server, 49 * MIB)
    for stop, _, thread in watches:
        stop.set()
        thread.join()
    assert reply.status_code == 201
    resource = reply.json()["resource"]
    assert resource["size"] == 49 * MIB
    assert resource["sha256"] == hashlib.sha256(PIECE * (49 * MIB // len(PIECE))).hexdigest()
    memory, waits = watches[0][1], watches[1][1]
    assert max(memory) - before < (16 if server.bucket is None else 32) * MIB  # the bucket's client reads ahead
    assert statistics.median(waits) < 0.25


@pytest.mark.parametrize("chunked", [False, True])
def test_51_mib_are_413_and_leave_nothing(chunked: bool, server: Server) -> None:
    reply = upload(server, 51 * MIB, chunked=chunked)
    assert (reply.status_code, reply.json()["error"]["code"]) == (413, "payload_too_large")
    assert [path for path in (server.folder / "storage").rglob("*") if path.is_file()] == []
    assert server.bucket is None or server.bucket.objects() == {}


def test_what_was_uploaded_comes_back_in_little_memory(server: Server) -> None:
    resource = upload(server, 49 * MIB).json()["resource"]
    before = server.process.memory_info().rss
    stop, memory, thread = repeatedly(lambda: server.process.memory_info().rss)
    digest = hashlib.sha256()
    with server.client.stream("GET", f"/resources/{resource['id']}/content") as reply:
        for chunk in reply.iter_raw():
            digest.update(chunk)
    stop.set()
    thread.join()
    assert digest.hexdigest() == resource["sha256"]
    assert max(memory) - before < (16 if server.bucket is None else 32) * MIB  # the bucket's client reads ahead
