"""A bucket that is wrongly named, refuses, is full, silent or gone, and is back again."""

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from memory_gateway.blobs import bucket as bucket_module
from memory_gateway.blobs import s3
from memory_gateway.blobs.choose import check_blobs, open_blobs
from memory_gateway.blobs.port import BlobStore
from memory_gateway.blobs.s3 import S3Blobs
from memory_gateway.kit.errors import StorageUnavailable
from memory_gateway.settings import SettingsError
from tests.fakes.s3 import SECRET_KEY, Answer, Bucket

MIB = 1 << 20
KEY = "ann/resources/1/notes.txt"
REFUSES = "the bucket refuses the gateway"
DOES_NOT_SERVE = "the bucket does not serve now"


async def _local_path(blobs: BlobStore) -> None:
    async with blobs.local_path(KEY):
        pass


async def _keys(blobs: BlobStore) -> None:
    async for _ in blobs.keys("ann"):
        pass


CALLS: dict[str, Callable[[BlobStore], Awaitable[object]]] = {
    "put": lambda blobs: blobs.put({"ann/resources/2/new.txt": [b"new"]}),
    "put large": lambda blobs: blobs.put({"ann/resources/2/new.txt": [b"x" * MIB] * 7}),
    "read": lambda blobs: blobs.read(KEY, 0, 5),
    "size": lambda blobs: blobs.size(KEY),
    "local_path": _local_path,
    "copy": lambda blobs: blobs.copy(KEY, "ann/resources/2/new.txt"),
    "keys": _keys,
    "remove": lambda blobs: blobs.remove("ann"),
}


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits for an answer as long as a test can."""
    monkeypatch.setitem(bucket_module._CLIENT, "read_timeout", timedelta(seconds=0.3))
    monkeypatch.setitem(bucket_module._RETRIES, "retry_timeout", timedelta(seconds=0.5))


def make_worse(bucket: Bucket, how: str) -> None:
    answers: dict[str, Answer] = {
        "refuses": (403, "AccessDenied"),
        "is full": (507, "XMinioStorageFull"),
        "is overloaded": (503, "SlowDown"),
        "was removed": (404, "NoSuchBucket"),
    }
    if how == "is gone":
        bucket.server.stop()
    elif how == "is silent":
        bucket.server.hush()
    else:
        bucket.server.plan = lambda *_: answers[how]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("how", ["is gone", "is silent", "refuses", "is full", "is overloaded", "was removed"])
async def test_every_call_is_refused_in_bounded_time_and_works_once_the_bucket_is_back(
    how: str, call: str, bucket: Bucket, impatient: None
) -> None:
    blobs = bucket.blobs()
    await blobs.put({KEY: [b"notes"]})
    make_worse(bucket, how)
    missing = FileNotFoundError if how == "was removed" and call in {"read", "local_path"} else StorageUnavailable
    begun = time.monotonic()
    if how == "was removed" and call == "size":
        assert await blobs.size(KEY) is None
    else:
        with pytest.raises(missing) as caught:
            await CALLS[call](blobs)
        if missing is StorageUnavailable:
            assert not any(word in str(caught.value) for word in ("127.0.0.1", bucket.name, "bucket's own words"))
    assert time.monotonic() - begun < 5
    bucket.server.open()
    assert bucket.objects() == {KEY: b"notes"}
    await CALLS[call](blobs)


async def test_a_large_upload_that_is_cut_off_leaves_neither_a_file_nor_parts(bucket: Bucket) -> None:
    parts: list[str] = []

    def after_two_parts(method: str, query: str) -> Answer | None:
        if method == "PUT" and "partNumber" in query:
            parts.append(query)
        return (507, "XMinioStorageFull") if method == "PUT" and len(parts) > 2 else None

    bucket.server.plan = after_two_parts
    blobs = bucket.blobs()
    with pytest.raises(StorageUnavailable):
        await blobs.put({KEY: [os.urandom(MIB)] * 22})
    bucket.server.open()
    assert len(parts) > 2
    assert bucket.objects() == {}
    assert bucket.server.unfinished_uploads(bucket.name) == 0
    await blobs.put({KEY: [b"x" * MIB] * 22})
    assert await blobs.size(KEY) == 22 * MIB


async def test_a_server_that_is_stopped_in_the_middle_of_an_upload_is_said_and_the_next_upload_works(
    bucket: Bucket,
) -> None:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()

    def stop(method: str, query: str) -> Answer | None:
        if method == "PUT" and "partNumber=2" in query:
            loop.call_soon_threadsafe(stopped.set)
            return 503, "ServiceUnavailable"
        return None

    bucket.server.plan = stop
    blobs = bucket.blobs()
    uploading = asyncio.create_task(blobs.put({KEY: [b"x" * MIB] * 22}))
    await stopped.wait()
    await asyncio.to_thread(bucket.server.stop)
    with pytest.raises(StorageUnavailable):
        await uploading
    bucket.server.open()
    assert bucket.objects() == {}
    await blobs.put({KEY: [b"notes"]})
    assert bucket.objects() == {KEY: b"notes"}


async def test_a_download_that_is_cut_off_is_a_fault_and_never_a_short_file(bucket: Bucket) -> None:
    blobs = bucket.blobs()
    await blobs.put({KEY: [os.urandom(MIB) for _ in range(30)]})
    reading = await blobs.read(KEY, 0, 30 * MIB)
    first = await anext(reading)
    bucket.server.plan = lambda *_: (403, "AccessDenied")
    size = len(first)
    await asyncio.to_thread(bucket.server.stop)
    try:
        async for piece in reading:
            size += len(piece)
    except StorageUnavailable:
        assert size < 30 * MIB
    else:
        assert size == 30 * MIB  # it had all left the server before


async def test_many_uploads_at_once_are_sent_few_at_a_time(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    blobs = bucket.blobs()
    assert isinstance(blobs, S3Blobs)
    running = most = 0
    send = blobs._send

    async def counted(key: str, file: Any) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await send(key, file)
        running -= 1

    monkeypatch.setattr(blobs, "_send", counted)
    await asyncio.gather(*(blobs.put({f"ann/resources/{number}/a": [b"x"]}) for number in range(20)))
    assert most == s3._SENT_AT_ONCE
    assert len(bucket.objects()) == 20


async def test_sending_that_was_begun_is_not_cancelled(bucket: Bucket) -> None:
    """So whoever cleans up never races with it."""
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()

    def ask(*_: str) -> None:
        loop.call_soon_threadsafe(asked.set)
        time.sleep(0.3)

    bucket.server.plan = ask
    sending = asyncio.create_task(bucket.blobs().put({KEY: [b"notes"]}))
    await asked.wait()
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    assert bucket.objects() == {KEY: b"notes"}


async def test_who_waits_too_long_for_a_turn_is_refused(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3, "_PATIENCE_SECONDS", 0.05)
    blobs = bucket.blobs()
    assert isinstance(blobs, S3Blobs)
    for _ in range(s3._SENT_AT_ONCE):
        await blobs._sending.acquire()
    with pytest.raises(StorageUnavailable):
        await blobs.put({KEY: [b"x"]})
    blobs._sending.release()
    await blobs.put({KEY: [b"x"]})
    assert bucket.objects() == {KEY: b"x"}


@pytest.mark.parametrize(
    ("how", "fault"), [("is gone", DOES_NOT_SERVE), ("refuses", REFUSES), ("was removed", DOES_NOT_SERVE)]
)
async def test_the_fault_is_told_and_its_end_too(
    how: str, fault: str, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3, "_LOOK_AGAIN_SECONDS", 0.0)
    blobs = bucket.blobs()
    assert await blobs.fault() is None
    make_worse(bucket, how)
    assert await blobs.fault() == fault
    bucket.server.open()
    assert await blobs.fault() is None


async def test_a_bucket_that_only_takes_nothing_is_told_after_an_upload_until_it_takes_something(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs = bucket.blobs()
    bucket.server.plan = lambda method, _: (507, "XMinioStorageFull") if method == "PUT" else None
    assert await blobs.fault() is None
    with pytest.raises(StorageUnavailable):
        await blobs.put({KEY: [b"x"]})
    assert await blobs.fault() == DOES_NOT_SERVE
    bucket.server.open()
    monkeypatch.setattr(s3, "_LOOK_AGAIN_SECONDS", 0.0)
    assert await blobs.fault() is None


async def test_many_who_ask_for_the_fault_cost_one_look(bucket: Bucket) -> None:
    looks: list[str] = []
    bucket.server.plan = lambda method, _: looks.append(method)
    blobs = bucket.blobs()
    await asyncio.gather(*(blobs.fault() for _ in range(20)))
    assert looks == ["GET"]


async def test_a_file_of_a_bucket_is_called_by_its_bucket_and_key(bucket: Bucket, tmp_path: Path) -> None:
    key = "ann/resources/1/Plan 季度.txt"
    assert bucket.blobs().uri(key) == f"s3://{bucket.name}/files/of/users/{key}"
    settings = structs.replace(bucket.server.settings(bucket.name, tmp_path), blob_url=f"s3://{bucket.name}/")
    whole = open_blobs(settings)
    assert whole.uri(key) == f"s3://{bucket.name}/{key}"
    await whole.put({key: [b"x"]})
    assert bucket.server.objects(bucket.name) == {key: b"x"}


@pytest.mark.parametrize("when", ["at start", "at the next copy"])
async def test_copies_that_a_killed_process_left_are_removed_an_hour_later(
    when: str, bucket: Bucket, tmp_path: Path
) -> None:
    blobs = bucket.blobs()
    await blobs.put({KEY: [b"notes"]})
    old, new, other = (tmp_path / "tmp" / name for name in ("blob-old", "blob-new", "other"))
    for path in (old, new, other):
        path.touch()
    for path in (old, other):
        os.utime(path, (time.time() - 4000, time.time() - 4000))
    if when == "at start":
        bucket.blobs()
    else:
        await _local_path(blobs)
    assert sorted((tmp_path / "tmp").iterdir()) == [new, other]


async def test_a_bucket_that_takes_and_gives_is_a_good_start(bucket: Bucket, tmp_path: Path) -> None:
    await check_blobs(bucket.server.settings(bucket.name, tmp_path))


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ((404, "NoSuchBucket"), "blob_url: there is no bucket NAME"),
        ((301, "PermanentRedirect"), "s3_region: the bucket NAME lies in another region"),
        ((400, "AuthorizationHeaderMalformed"), "s3_region: the bucket NAME lies in another region"),
        ((403, "InvalidAccessKeyId"), "s3_access_key_id: the bucket's server does not know it"),
        ((403, "SignatureDoesNotMatch"), "s3_secret_access_key: does not belong to s3_access_key_id"),
        ((403, "AccessDenied"), "s3_access_key_id: may not list and write the bucket NAME"),
        ((401, "Unauthorized"), "s3_access_key_id: may not list and write the bucket NAME"),
    ],
)
@pytest.mark.parametrize("only", ["GET", "PUT"])
async def test_what_is_wrong_is_said_at_start_in_one_line_that_names_the_setting(
    only: str, answer: Answer, fault: str, bucket: Bucket, tmp_path: Path
) -> None:
    bucket.server.plan = lambda method, _: answer if method == only else None
    with pytest.raises(SettingsError) as caught:
        await check_blobs(bucket.server.settings(bucket.name, tmp_path))
    assert str(caught.value) == fault.replace("NAME", bucket.name)


@pytest.mark.parametrize("how", ["is gone", "is overloaded"])
async def test_a_bucket_that_is_away_at_start_is_waited_for(
    how: str, bucket: Bucket, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_worse(bucket, how)
    with caplog.at_level(logging.DEBUG):
        await check_blobs(bucket.server.settings(bucket.name, tmp_path))
    assert f"blob_url: the bucket {bucket.name} does not serve now; uploads are refused until it does" in caplog.text
    assert SECRET_KEY not in caplog.text


async def test_no_log_shows_the_secret(bucket: Bucket, caplog: pytest.LogCaptureFixture) -> None:
    make_worse(bucket, "refuses")
    with caplog.at_level(logging.DEBUG), pytest.raises(StorageUnavailable):
        await bucket.blobs().put({KEY: [b"x"]})
    assert "the file store cannot take the file now" in caplog.text
    assert SECRET_KEY not in caplog.text


def test_a_host_of_its_own_stands_before_the_endpoint(bucket: Bucket, tmp_path: Path) -> None:
    settings = structs.replace(
        bucket.server.settings(bucket.name, tmp_path), s3_endpoint="https://s3.example", s3_path_style=False
    )
    config = bucket_module._config(settings, bucket.name)
    assert config["endpoint"] == f"https://{bucket.name}.s3.example"
    assert config["virtual_hosted_style_request"] is True


async def test_keys_and_endpoint_may_come_from_the_names_that_other_programs_read(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = bucket.server.settings(bucket.name, tmp_path)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAOTHER")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "other")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", bucket.server.endpoint)
    plain = structs.replace(
        settings, s3_endpoint=None, s3_region=None, s3_access_key_id=None, s3_secret_access_key=None
    )
    await open_blobs(plain).put({KEY: [b"x"]})
    assert bucket.objects() == {KEY: b"x"}
