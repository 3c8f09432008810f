"""A real server whose files lie in a bucket."""

import os
import signal
import threading
from pathlib import Path

import httpx
import pytest

from memory_gateway.demo.child import free_port, running_server
from tests.e2e.conftest import ADMIN_KEY, StartServer, register
from tests.e2e.test_large_files import book, wait_until_indexed
from tests.e2e.test_starting import run
from tests.fakes.s3 import ACCESS_KEY, SECRET_KEY, Bucket

pytestmark = pytest.mark.slow


def settings(bucket: Bucket) -> dict[str, str]:
    return {
        "blob_url": f"s3://{bucket.name}",
        "s3_endpoint": bucket.server.endpoint,
        "s3_region": "us-east-1",
        "s3_access_key_id": ACCESS_KEY,
        "s3_secret_access_key": SECRET_KEY,
    }


def objects(bucket: Bucket) -> dict[str, bytes]:
    return bucket.server.objects(bucket.name)


def test_files_small_and_large_are_read_found_and_given_back_by_several_processes(
    start_server: StartServer, bucket: Bucket, tmp_path: Path
) -> None:
    server = start_server(workers="2", **settings(bucket))
    ann, anna = register(server, "ann"), register(server, "anna")
    small = ann.upload("tea.txt", b"Ann drinks gunpowder tea with mint.").json()["resource"]
    large_bytes = book(2)
    large = ann.upload("book.txt", large_bytes).json()["resource"]
    assert (small["status"], large["status"]) == ("indexed", "stored")
    assert wait_until_indexed(ann, large["id"])["status"] == "indexed"
    assert "gunpowder" in ann.search("gunpowder", scope="resources")[0]["text"]
    [attachment] = ann.search("place2000", scope="resources")[0]["attachments"]
    key = attachment["internal_uri"].removeprefix(f"s3://{bucket.name}/")
    assert key == f"ann/resources/{large['id']}/book.txt"
    assert objects(bucket)[key] == large_bytes
    assert ann.http.get(f"/resources/{large['id']}/content").content == large_bytes
    assert anna.search("gunpowder", scope="resources") == []
    assert anna.http.get(f"/resources/{small['id']}/content").status_code == 404
    assert [path for path in (tmp_path / "data" / "tmp").iterdir() if path.is_file()] == []
    assert not (tmp_path / "data" / "storage").exists()
    assert ann.http.get("/health").json()["files"] == {"store": "s3", "healthy": True, "reason": None}


def test_no_acknowledged_file_is_lost_when_the_server_is_killed(tmp_path: Path, bucket: Bucket) -> None:
    acknowledged: dict[str, bytes] = {}
    with running_server(tmp_path, ADMIN_KEY, embedder="none", **settings(bucket)) as server:
        ann = register(server, "ann")

        def upload() -> None:
            for number in range(1000):
                content = b"note %d\n" % number * 1000
                try:
                    reply = ann.upload(f"note-{number}.txt", content)
                except httpx.TransportError:
                    return
                acknowledged[reply.json()["resource"]["id"]] = content

        uploads = threading.Thread(target=upload)
        uploads.start()
        while len(acknowledged) < 20:
            uploads.join(0.01)
        os.kill(server.pid, signal.SIGKILL)
        uploads.join()
    with running_server(tmp_path, ADMIN_KEY, embedder="none", **settings(bucket)) as server:
        ann.at(server)
        for resource_id, content in acknowledged.items():
            assert ann.http.get(f"/resources/{resource_id}/content").content == content


def test_a_wrong_bucket_ends_the_start_with_one_line(bucket: Bucket, tmp_path: Path) -> None:
    flags = ("serve", "--gateway-port", str(free_port()), "--service-port", str(free_port()), "--config", "s3.toml")
    wrong = {**settings(bucket), "blob_url": "s3://no-such-bucket", "embedder": "none"}
    (tmp_path / "s3.toml").write_text("".join(f'{name} = "{value}"\n' for name, value in wrong.items()), "utf-8")
    assert run(tmp_path, *flags) == "Error: blob_url: there is no bucket no-such-bucket"
