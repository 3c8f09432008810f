"""Large files cost the server neither memory nor time."""

import time
from pathlib import Path

import psutil

from memory_gateway.demo.child import RunningServer
from tests.e2e.conftest import Person, StartServer, register

MIB = 1 << 20


def book(mebibytes: int) -> bytes:
    lines = (f"Chapter {number} tells of place{number} and its people.\n" for number in range(10_000_000))
    text = bytearray()
    for line in lines:
        text += line.encode()
        if len(text) >= mebibytes * MIB:
            return bytes(text)
    raise AssertionError("unreachable")


def wait_until_indexed(person: Person, resource_id: str) -> dict[str, object]:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        resource: dict[str, object] = person.http.get(f"/resources/{resource_id}").json()
        if resource["status"] != "stored":
            return resource
        time.sleep(0.1)
    raise AssertionError("not indexed in two minutes")


def test_a_large_file_is_taken_at_once_and_indexed_by_a_child_while_others_are_served(
    start_server: StartServer,
) -> None:
    server = start_server()
    ann, anna = register(server, "ann"), register(server, "anna")
    anna.add("green tea")
    assert anna.search("tea")
    before = psutil.Process(server.pid).memory_info().rss
    reply = ann.upload("book.txt", book(3))
    assert reply.status_code == 201
    assert reply.json()["resource"]["status"] == "stored"
    slowest = 0.0
    resource_id = reply.json()["resource"]["id"]
    while ann.http.get(f"/resources/{resource_id}").json()["status"] == "stored":
        started = time.monotonic()
        assert anna.search("tea")
        assert anna.add("more tea", conversation="2").status_code == 200
        slowest = max(slowest, time.monotonic() - started)
    resource = wait_until_indexed(ann, resource_id)
    assert resource["status"] == "indexed"
    assert resource["error"] == "only the first 2000000 characters were indexed"
    assert slowest < 10, "a hang, not a slow machine"
    assert psutil.Process(server.pid).memory_info().rss - before < 16 * MIB
    assert "place20000 " in ann.search("place20000", scope="resources")[0]["text"]
    assert ann.search("place20000")[0]["attachments"][0]["name"] == "book.txt"


def test_forty_nine_mebibytes_stream_through_and_fifty_one_are_refused(server: RunningServer, tmp_path: Path) -> None:
    ann = register(server, "ann")
    ann.upload("warm.txt", b"warm")
    process = psutil.Process(server.pid)
    before = process.memory_info().rss
    reply = ann.upload("noise.bin", b"\0noise" * (49 * MIB // 6))
    assert reply.status_code == 201
    # what a collector could give back is not growth, a copy of the file would be
    assert process.memory_info().rss - before < 16 * MIB
    assert wait_until_indexed(ann, reply.json()["resource"]["id"])["status"] in {"indexed", "failed"}
    assert ann.upload("more.bin", b"\0noise" * (51 * MIB // 6)).status_code == 413
    assert len(ann.http.get("/resources").json()["resources"]) == 2
