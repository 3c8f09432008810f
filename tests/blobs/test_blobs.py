"""What every store of files does alike."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_gateway.blobs.port import BlobStore
from memory_gateway.kit.files import safe_name
from tests.blobs.conftest import Kept

MIB = 1 << 20
KEY = "ann/resources/1/notes.txt"
DIGITS = b"0123456789" * 50
LOOK_ALIKES = ("ann", "anna", "Ann-2", "a_n", "axn", "an", "ann.", "ann+1", "ann@x")
NAMES = (
    "notes.txt",
    "Plan 季度 总结.txt",
    "100% sure #1 & more+.txt",
    "%41%2F..txt",
    "a;b=c@d!$(x),[y]{z}^`~'.txt",
    "e\u0301 and é.txt",
    "👩‍🔬.png",
    "..hidden.",
    "x" * 300 + ".pdf",
)


async def read(blobs: BlobStore, key: str, first: int = 0, size: int = 1 << 30) -> bytes:
    return b"".join([piece async for piece in await blobs.read(key, first, size)])


async def keys(blobs: BlobStore, prefix: str) -> list[str]:
    return [key async for key in blobs.keys(prefix)]


async def test_what_was_put_is_there_and_comes_back(kept: Kept) -> None:
    await kept.blobs.put({KEY: [b"one ", b"", b"two"]})
    assert kept.all() == {KEY: b"one two"}
    assert await kept.blobs.size(KEY) == 7
    assert await read(kept.blobs, KEY, 0, 7) == b"one two"


@pytest.mark.parametrize(("first", "size"), [(0, 1), (499, 1), (10, 20), (0, 500)])
async def test_a_part_is_read_by_itself(first: int, size: int, blobs: BlobStore) -> None:
    await blobs.put({KEY: [DIGITS]})
    assert await read(blobs, KEY, first, size) == DIGITS[first : first + size]


async def test_a_large_file_is_put_in_pieces_and_equal_to_the_byte(kept: Kept) -> None:
    content = os.urandom(11 * MIB + 12_345)
    blob = kept.blobs.new(KEY)
    for start in range(0, len(content), 700_000):
        await blob.write([content[start : start + 700_000]])
    await blob.finish()
    await blob.abandon()
    assert kept.all() == {KEY: content}
    assert await read(kept.blobs, KEY, 5 * MIB - 3, 6) == content[5 * MIB - 3 : 5 * MIB + 3]
    assert await read(kept.blobs, KEY, 0, len(content)) == content
    async with kept.blobs.local_path(KEY) as path:
        assert path.read_bytes() == content


async def test_nothing_is_seen_before_it_is_finished_and_nothing_after_it_was_abandoned(kept: Kept) -> None:
    blob = kept.blobs.new(KEY)
    await blob.write([DIGITS])
    assert kept.all() == {}
    assert await keys(kept.blobs, "ann") == []
    await blob.abandon()
    await blob.abandon()
    assert kept.all() == {}


async def test_what_is_finished_stays_when_it_is_abandoned(kept: Kept) -> None:
    blob = kept.blobs.new(KEY)
    await blob.write([b"one "])
    await blob.finish([b"two"])
    await blob.abandon()
    assert kept.all() == {KEY: b"one two"}


async def test_a_put_whose_bytes_end_in_a_fault_leaves_nothing(kept: Kept) -> None:
    def broken() -> Iterator[bytes]:
        yield b"one"
        raise ValueError("padding in the middle")

    with pytest.raises(ValueError, match="padding"):
        await kept.blobs.put({KEY: broken()})
    assert kept.all() == {}


async def test_a_put_takes_the_place_of_what_was_there(kept: Kept) -> None:
    await kept.blobs.put({KEY: [b"first and longer"]})
    await kept.blobs.put({KEY: [b"second"]})
    assert kept.all() == {KEY: b"second"}


async def test_a_cancelled_put_goes_on_to_its_end(kept: Kept) -> None:
    """So whoever cleans up never races with it."""
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    def pieces() -> Iterator[bytes]:
        loop.call_soon_threadsafe(begun.set)
        yield DIGITS

    task = asyncio.create_task(kept.blobs.put({KEY: pieces()}))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    seen = kept.all()
    await asyncio.sleep(0.2)
    assert kept.all() == seen
    assert seen in ({}, {KEY: DIGITS})


@pytest.mark.parametrize("name", NAMES)
async def test_any_safe_name_is_a_key_as_it_is(name: str, kept: Kept) -> None:
    key = f"ann/resources/1/{safe_name(name)}"
    await kept.blobs.put({key: [b"x"]})
    assert kept.all() == {key: b"x"}
    assert await keys(kept.blobs, "ann") == [key]
    assert await read(kept.blobs, key) == b"x"
    await kept.blobs.remove("ann/resources/1")
    assert kept.all() == {}


async def test_what_is_missing_is_said_before_anything_is_read(blobs: BlobStore) -> None:
    assert await blobs.size(KEY) is None
    with pytest.raises(FileNotFoundError):
        await blobs.read(KEY, 0, 1)
    with pytest.raises(FileNotFoundError):
        async with blobs.local_path(KEY):
            pass
    await blobs.put({f"{KEY}/x": [b"x"]})
    assert await blobs.size(KEY) is None


async def test_a_copy_has_the_same_bytes_and_takes_the_place_of_what_was_there(kept: Kept) -> None:
    other = "ann/resources/2/other.txt"
    await kept.blobs.put({KEY: [DIGITS]})
    await kept.blobs.copy(KEY, other)
    assert kept.all() == {KEY: DIGITS, other: DIGITS}
    await kept.blobs.put({other: [b"half"]})
    await kept.blobs.copy(KEY, other)
    assert kept.all() == {KEY: DIGITS, other: DIGITS}
    await kept.blobs.remove("ann/resources/1")
    assert kept.all() == {other: DIGITS}


@pytest.mark.parametrize("user_id", LOOK_ALIKES)
async def test_a_users_prefix_is_exactly_that_users(user_id: str, kept: Kept) -> None:
    all_keys = {one: [f"{one}/resources/1/a", f"{one}/memory_attachments/2/b"] for one in LOOK_ALIKES}
    for one in LOOK_ALIKES:
        for key in all_keys[one]:
            await kept.blobs.put({key: [one.encode()]})
    assert sorted(await keys(kept.blobs, user_id)) == sorted(all_keys[user_id])
    await kept.blobs.remove(user_id)
    others = {key: one.encode() for one in LOOK_ALIKES if one != user_id for key in all_keys[one]}
    assert kept.all() == others
    assert await keys(kept.blobs, user_id) == []


async def test_to_remove_nothing_is_fine(blobs: BlobStore) -> None:
    await blobs.remove("ann/resources/1")


async def test_more_than_a_page_of_files_is_listed_and_removed(kept: Kept) -> None:
    wanted = [f"ann/resources/{number:04}/a" for number in range(130)]
    for key in wanted:
        await kept.blobs.put({key: [b"x"]})
    assert sorted(await keys(kept.blobs, "ann")) == wanted
    await kept.blobs.remove("ann")
    assert kept.all() == {}


async def test_a_local_path_lasts_as_long_as_its_block(kept: Kept, tmp_path: Path) -> None:
    await kept.blobs.put({KEY: [DIGITS]})
    async with kept.blobs.local_path(KEY) as path:
        assert path.read_bytes() == DIGITS
        assert path.is_relative_to(tmp_path)
    assert path.exists() == (kept.blobs.kind == "folder")
    assert kept.all() == {KEY: DIGITS}


async def test_a_block_that_fails_leaves_no_copy(blobs: BlobStore, tmp_path: Path) -> None:
    await blobs.put({KEY: [DIGITS]})
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(RuntimeError):
        async with blobs.local_path(KEY):
            raise RuntimeError
    assert sorted(tmp_path.rglob("*")) == before


async def test_a_store_in_order_has_no_fault(blobs: BlobStore) -> None:
    assert await blobs.fault() is None


async def test_several_files_are_put_at_once_and_a_fault_of_one_is_raised(kept: Kept) -> None:
    def broken() -> Iterator[bytes]:
        yield b"one"
        raise ValueError("padding in the middle")

    files = {f"ann/resources/{number}/a": [b"%d" % number] for number in range(9)}
    await kept.blobs.put({key: iter(pieces) for key, pieces in files.items()})
    assert kept.all() == {key: pieces[0] for key, pieces in files.items()}
    await kept.blobs.put({})
    with pytest.raises(ValueError, match="padding"):
        await kept.blobs.put({KEY: broken(), "ann/resources/2/b": [b"b"]})
    assert KEY not in kept.all()
