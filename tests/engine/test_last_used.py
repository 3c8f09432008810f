"""What is kept of the spaces last used, and what is let go."""

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from memory_gateway.engine import last_used
from memory_gateway.engine.columns import LONGEST, RECORD, columns_of, length_and_cues
from memory_gateway.engine.held_columns import HeldColumns
from memory_gateway.engine.last_used import LastUsed
from tests.engine.conftest import Talk, open_talk


class Box(NamedTuple):
    size: int


def kept(held: LastUsed[Box], *sizes: int) -> list[int]:
    """Keep boxes of these sizes under the numbers from 1 on; the numbers that are still there."""
    for number, size in enumerate(sizes, 1):
        held.keep(number, Box(size), held.get(number)[1])
    return [number for number in range(1, len(sizes) + 1) if held.get(number)[0] is not None]


@pytest.fixture(autouse=True)
def no_overhead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_used, "_A_SPACE_MORE", 0)


def test_the_longest_unused_go_when_room_runs_out() -> None:
    assert kept(LastUsed[Box](100), 40, 40, 40) == [2, 3]
    assert kept(LastUsed[Box](100), 40, 40, 20) == [1, 2, 3]


def test_what_was_asked_for_again_stays() -> None:
    held = LastUsed[Box](100)
    kept(held, 40, 40)
    held.get(1)
    held.keep(3, Box(40), held.get(3)[1])
    assert [number for number in (1, 2, 3) if held.get(number)[0]] == [1, 3]


def test_one_that_is_too_large_alone_drives_nobody_out() -> None:
    assert kept(LastUsed[Box](100), 40, 40, 101) == [1, 2]


def test_a_new_state_takes_the_place_and_the_room_of_the_old() -> None:
    held = LastUsed[Box](100)
    for size in (60, 70, 30):
        held.keep(1, Box(size), held.get(1)[1])
    held.keep(2, Box(70), held.get(2)[1])
    assert held.get(1)[0] == Box(30)
    assert held.get(2)[0] == Box(70)


def test_what_has_grown_is_counted_anew_and_pushes_others_out() -> None:
    class Growing:
        size = 40

    held, growing = LastUsed[Box | Growing](100), Growing()
    held.keep(1, Box(40), held.get(1)[1])
    held.keep(2, growing, held.get(2)[1], "part")
    growing.size = 70
    held.recount(2, "part")
    assert (held.get(1)[0], held.get(2, "part")[0], held._bytes) == (None, growing, 70)
    growing.size = 101
    held.recount(2, "part")
    assert (held.get(2, "part")[0], held._bytes) == (None, 0)


def test_parts_of_a_space_are_apart_and_forgotten_together() -> None:
    held = LastUsed[Box](100)
    for space_no, part in ((1, "a"), (1, "b"), (2, "a")):
        held.keep(space_no, Box(len(part) + space_no), held.get(1)[1], part)
    assert held.get(1)[0] is None
    held.forget([1])
    assert (held.get(1, "a")[0], held.get(1, "b")[0], held.get(2, "a")[0]) == (None, None, Box(3))


def test_what_was_read_before_something_was_forgotten_is_not_kept() -> None:
    held = LastUsed[Box](100)
    _, era = held.get(1)
    held.forget([1])
    held.keep(1, Box(10), era)
    assert held.get(1)[0] is None
    held.keep(1, Box(10), held.get(1)[1])
    held.forget([2])
    assert held.get(1)[0] == Box(10)


def test_many_threads_leave_the_count_of_bytes_right() -> None:
    held = LastUsed[Box](1_000)

    def work(seed: int) -> None:
        for step in range(300):
            number = (seed * 7 + step * 13) % 40
            held.keep(number, Box(10 + (step * seed) % 90), held.get(number)[1])
            if step % 50 == 0:
                held.forget([number])

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    assert held._bytes == sum(box.size for box, _ in held._held.values()) <= 1_000


@pytest.fixture
async def talk(tmp_path: Path) -> AsyncIterator[Talk]:
    async with open_talk(tmp_path) as opened:
        yield opened


async def test_columns_are_those_of_the_moment_that_the_transaction_sees(talk: Talk) -> None:
    held = HeldColumns()
    await talk.say("tea", "milk")
    first = await talk.database.read(lambda transaction: held.of(transaction, 1))
    assert await talk.database.read(lambda transaction: held.of(transaction, 1)) is first
    await talk.say("lemon")
    assert len(await talk.database.read(lambda transaction: held.of(transaction, 1))) == 3
    assert len(first) == 2


async def test_nobody_can_write_to_columns_that_searches_share(talk: Talk) -> None:
    await talk.say("tea")
    columns = await talk.database.read(lambda transaction: HeldColumns().of(transaction, 1))
    with pytest.raises(ValueError, match="read-only"):
        columns.lengths[0] = 9


async def test_after_an_erasure_nothing_is_held(talk: Talk) -> None:
    await talk.say("tea")
    await talk.search("tea")
    assert talk.engine._held.columns._spaces.get(1)[0] is not None
    await talk.engine.erase("ann")
    assert talk.engine._held.columns._spaces.get(1)[0] is None


@pytest.mark.parametrize(("length", "cues"), [(0, 0), (7, 3), (LONGEST, 1), (LONGEST + 5, 2), (70_000, 3)])
def test_length_and_cues_share_a_field(length: int, cues: int) -> None:
    records = np.zeros(1, dtype=RECORD)
    records["length_and_cues"] = length_and_cues(length, cues)
    columns = columns_of(records)
    assert (columns.lengths[0], columns.cues[0]) == (min(length, LONGEST), cues)
