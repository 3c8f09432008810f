"""Stores of memory entries for the benchmarks: sentences in English and Chinese, the same on every machine.

They are written through the room's own writer, without looking for similar entries first, many in a transaction; made
once and kept under ``benchmarks/.cache``; a changed room makes new ones.
"""

import asyncio
import hashlib
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import islice
from pathlib import Path

import numpy as np
from msgspec import Struct

from benchmarks.corpus import vocabulary
from benchmarks.servers import CACHE, work_folder
from memory_gateway.kit.clock import rfc3339, system_clock
from memory_gateway.kit.ids import OwnedIds, uuid7_id
from memory_gateway.memory_service.entries.drafts import begun, draft_of
from memory_gateway.memory_service.entries.nearest import Nearest
from memory_gateway.memory_service.entries.owners import open_owner
from memory_gateway.memory_service.entries.schemas import NewEntry
from memory_gateway.memory_service.entries.service import Entries
from memory_gateway.memory_service.entries.stored import digest_of
from memory_gateway.memory_service.entries.writing import Writing
from memory_gateway.storage.choose import FILE_NAME
from memory_gateway.storage.migrate import migrate
from memory_gateway.storage.port import Transaction
from memory_gateway.storage.sqlite import SqliteDatabase

USER = "reader"
STRANGER_ENTRIES = 1_000
_BATCH = 500
_CHINESE_SHARE = 0.5
_PACKAGE = Path(__file__).parent.parent / "src" / "memory_gateway"


class Wanted(Struct, frozen=True):
    """How many entries: of the user who is measured, and of others, between them. ``copies``: one in so many of the
    user's is an earlier one with a word changed; 0 for none."""

    entries: int
    strangers: int = 0
    copies: int = 0

    @property
    def name(self) -> str:
        return f"entries-{_room_version()}-{self.entries}-{self.strangers}-{self.copies}"


def sentences(seed: int) -> Iterator[str]:
    """English of 6 to 12 words and Chinese of 8 to 15, the words Zipf-distributed."""
    words = vocabulary()
    random = np.random.default_rng(seed)
    english = [word for word in words if word.isascii()]
    chinese = [word for word in words if not word.isascii()]
    while True:
        if random.random() < _CHINESE_SHARE:
            yield "".join(_some(random, chinese, 8, 15)) + "。"
        else:
            yield " ".join(_some(random, english, 6, 12)).capitalize() + "."


def _some(random: np.random.Generator, words: list[str], fewest: int, most: int) -> list[str]:
    # the n-th word comes 1/n times as often as the first: the logarithm of its rank is spread evenly
    spread = random.random(int(random.integers(fewest, most + 1)))
    return [words[int(len(words) ** even) - 1] for even in spread]


def users_sentences(wanted: Wanted) -> Iterator[str]:
    """What the measured user has said, in order."""
    fresh = sentences(1)
    last = ""
    for number in range(wanted.entries):
        copied = wanted.copies and number % wanted.copies == wanted.copies - 1
        last = f"{last[:-1]} 7{last[-1]}" if copied else next(fresh)
        yield last


@contextmanager
def copied_store(wanted: Wanted) -> Iterator[Path]:
    """A folder with a store that may be changed; its database lies where a server looks for it."""
    original = CACHE / wanted.name
    if not original.exists():
        asyncio.run(make(wanted))
    with work_folder() as folder:
        shutil.copytree(original, folder / "data")
        yield folder


@asynccontextmanager
async def open_entries(folder: Path) -> AsyncIterator[Entries]:
    """The room on a folder of `copied_store`."""
    database = SqliteDatabase(folder / "data" / FILE_NAME)
    entries = Entries(database, system_clock, uuid7_id)
    try:
        yield entries
    finally:
        await entries.close()
        await database.close()


async def make(wanted: Wanted) -> None:
    """Write the store; it gets its name when it is whole."""
    building = CACHE / f"building-{wanted.name}"
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    database = SqliteDatabase(building / FILE_NAME)
    await migrate(database, system_clock)
    await _fill(database, wanted)
    await database.close()
    building.rename(CACHE / wanted.name)


async def _fill(database: SqliteDatabase, wanted: Wanted) -> None:
    started, nearest = time.perf_counter(), Nearest()
    own, others = users_sentences(wanted), sentences(2)
    strangers_left = wanted.strangers
    for done in range(0, wanted.entries, _BATCH):
        await _write(database, nearest, USER, list(islice(own, _BATCH)))
        share = wanted.strangers * min(1.0, (done + _BATCH) / wanted.entries)
        while strangers_left > wanted.strangers - share:
            number = min(_BATCH, strangers_left)
            stranger = f"stranger-{(wanted.strangers - strangers_left) // STRANGER_ENTRIES}"
            await _write(database, nearest, stranger, list(islice(others, number)))
            strangers_left -= number
        if done % (20 * _BATCH) == 0:
            made = done + _BATCH + wanted.strangers - strangers_left
            rate = made / (time.perf_counter() - started)
            print(f"  making {wanted.name}: {made:,} entries, {rate:,.0f}/s", flush=True)


async def _write(database: SqliteDatabase, nearest: Nearest, user_id: str, texts: list[str]) -> None:
    new_id = OwnedIds(system_clock)

    async def work(transaction: Transaction) -> None:
        owner = await open_owner(transaction, user_id)
        writing = Writing(transaction, owner, nearest)
        now = rfc3339(system_clock())
        for text in texts:
            draft = draft_of(NewEntry(user_id=user_id, content=text))
            memory, digest = begun(draft.memory, now), digest_of(text)
            await writing.add(memory, digest, new_id, summary_derived=draft.summary_derived)
        await writing.finish()

    await database.write(work)


def _room_version() -> str:
    """Changes with the room's code and the schema, so that an old store is never measured by new code."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    room = _PACKAGE / "memory_service" / "entries"
    for path in sorted([*room.glob("*.py"), *(_PACKAGE / "storage" / "migrations").glob("*.sql")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:10]
