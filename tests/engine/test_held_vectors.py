"""Vectors as small integers, held between searches: right, exact, and never more than the snapshot shows."""

import contextlib
import threading
import warnings
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import numpy as np
import pytest
from numpy.typing import NDArray

from memory_gateway.engine import store
from memory_gateway.engine.columns import BLOCK_TURNS
from memory_gateway.engine.held_vectors import HeldVectors, as_bytes, named_model, served_set, stored_model
from memory_gateway.engine.vector_sets import begin_anew
from memory_gateway.engine.vectors import Backlog, save_vectors
from memory_gateway.storage.migrate import migrate
from memory_gateway.storage.port import NO_PARAMS, Params, Row
from memory_gateway.storage.sqlite import SqliteDatabase, SqliteTransaction, connect, drive
from tests.fakes.clock import TurnedClock

MODEL = "m1"
DIMENSIONS = 384  # the fewer they are, the more a rounded component weighs
ROUNDED = 2e-3
Rows = NDArray[np.float32]


def random_rows(count: int, seed: int = 1) -> Rows:
    """Unit vectors that lean to one side, as those of real models do."""
    made = np.random.default_rng(seed).normal(0.2, 1.0, (count, DIMENSIONS)).astype(np.float32)
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True), dtype=np.float32)


class CountingTransaction(SqliteTransaction):
    """Counts how often the vectors themselves are read."""

    def __init__(self, connection: apsw.Connection) -> None:
        super().__init__(connection)
        self.read = 0

    async def fetch(self, sql: str, params: Params = NO_PARAMS) -> list[Row]:
        self.read += sql == store.VECTORS_FROM
        return await super().fetch(sql, params)


class Shelf:
    """One connection to the file, and short words for what is done with it."""

    def __init__(self, path: Path) -> None:
        self.connection = connect(path)
        self.transaction = CountingTransaction(self.connection)

    def space(self, user_id: str) -> int:
        place = {"user_id": user_id, "app_id": "default", "project_id": "default"}
        ((space_no,),) = drive(self.transaction.fetch(store.CREATE_SPACE, place))
        return int(space_no)

    def append(self, space_no: int, rows: Rows, model: str = MODEL) -> None:
        row = drive(self.transaction.fetch_one(store.VECTOR_SETS, {"space_no": space_no}))
        assert row is not None
        assert drive(save_vectors(self.transaction, Backlog(space_no, row[1], [], row[2], row[4]), rows, model))

    def begin_anew(self, space_no: int, model: str) -> None:
        drive(begin_anew(self.transaction, space_no, stored_model(model, DIMENSIONS)))

    def cosines(self, held: HeldVectors, space_no: int, query: Rows, turns: int) -> list[float]:
        served = drive(served_set(self.transaction, space_no))
        found = drive(held.cosines(self.transaction, space_no, served, query, turns))
        assert found.shape == (turns,)
        return [float(cosine) for cosine in found]


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    database = SqliteDatabase(tmp_path / "engine.db")
    await migrate(database, TurnedClock())
    await database.close()
    return tmp_path / "engine.db"


@pytest.fixture
async def shelf(path: Path) -> AsyncIterator[Shelf]:
    opened = Shelf(path)
    yield opened
    opened.connection.close()


@pytest.mark.parametrize("count", [1, BLOCK_TURNS, BLOCK_TURNS + 1, 2 * BLOCK_TURNS + 7])
def test_cosines_are_those_of_the_vectors_themselves(shelf: Shelf, count: int) -> None:
    rows, query = random_rows(count), random_rows(1, seed=2)[0]
    space_no = shelf.space("ann")
    shelf.append(space_no, rows)
    np.testing.assert_allclose(shelf.cosines(HeldVectors(), space_no, query, count), rows @ query, atol=ROUNDED)


def test_a_cosine_does_not_hang_on_how_many_are_held_or_on_when_they_came(shelf: Shelf) -> None:
    rows, query = random_rows(3_000), random_rows(1, seed=2)[0]
    many = shelf.space("many")
    held = HeldVectors()
    for first in range(0, 3_000, 500):
        shelf.append(many, rows[first : first + 500])
        shelf.cosines(held, many, query, first + 500)
    among = shelf.cosines(held, many, query, 3_000)
    assert shelf.cosines(HeldVectors(), many, query, 3_000) == among
    for number in (0, 1, 999, BLOCK_TURNS, 2_999):
        alone = shelf.space(f"alone {number}")
        shelf.append(alone, rows[number : number + 1])
        assert shelf.cosines(held, alone, query, 1) == [among[number]]
    assert shelf.cosines(held, many, query, 1_500) == among[:1_500]


def test_a_vector_and_a_longer_one_of_its_direction_are_the_same(shelf: Shelf) -> None:
    rows = random_rows(1)
    space_no = shelf.space("ann")
    shelf.append(space_no, np.concatenate([rows, rows * 8, -rows]))
    one, longer, against = shelf.cosines(HeldVectors(), space_no, rows[0], 3)
    assert one == longer == pytest.approx(1.0)
    assert against == -one


def test_bytes_keep_to_127_on_both_sides() -> None:
    assert as_bytes(np.array([[-2.0, 1.0, 0.0], [0.0, 0.0, 0.0]], np.float32)).tolist() == [[-127, 64, 0], [0, 0, 0]]


def test_turns_without_a_vector_have_no_cosine(shelf: Shelf) -> None:
    rows = random_rows(3)
    space_no = shelf.space("ann")
    assert np.isnan(shelf.cosines(HeldVectors(), space_no, rows[0], 2)).tolist() == [True, True]
    shelf.append(space_no, rows)
    assert np.isnan(shelf.cosines(HeldVectors(), space_no, rows[0], 5)).tolist() == [False] * 3 + [True] * 2
    assert shelf.cosines(HeldVectors(), space_no, rows[0], 0) == []
    assert np.isnan(shelf.cosines(HeldVectors(), space_no + 1, rows[0], 1)).all(), "no such space"


def test_what_a_space_remembers_of_its_vectors_names_the_model_that_made_them() -> None:
    assert named_model(stored_model("bge m3@8 ", 8)) == ("bge m3@8 ", 8)
    assert named_model("m1") is None, "vectors in the form of an older version are of no use"


def test_vectors_of_another_model_take_the_place_of_those_held_when_they_are_as_many(shelf: Shelf) -> None:
    first, second = random_rows(4), random_rows(4, seed=3)
    space_no = shelf.space("ann")
    held = HeldVectors()
    shelf.append(space_no, first)
    before = shelf.cosines(held, space_no, first[0], 4)
    shelf.begin_anew(space_no, "m2")
    assert shelf.cosines(held, space_no, first[0], 4) == before
    shelf.append(space_no, second[:3], "m2")
    assert shelf.cosines(held, space_no, first[0], 4) == before
    shelf.append(space_no, second[3:], "m2")
    found = shelf.cosines(held, space_no, first[0], 4)
    np.testing.assert_allclose(found, second @ first[0], atol=ROUNDED)


def test_vectors_that_a_former_model_makes_once_more_are_not_mistaken_for_those_held(shelf: Shelf) -> None:
    space_no = shelf.space("ann")
    held = HeldVectors()
    query = random_rows(1, seed=9)[0]
    for seed, model in enumerate(("m1", "m2", "m1", "m2")):
        shelf.begin_anew(space_no, model)
        shelf.append(space_no, random_rows(4, seed=seed), model)
        found = shelf.cosines(held, space_no, query, 4)
        np.testing.assert_allclose(found, random_rows(4, seed=seed) @ query, atol=ROUNDED)


def test_what_another_connection_appends_is_there_at_the_next_search(shelf: Shelf, path: Path) -> None:
    rows, query = random_rows(BLOCK_TURNS + 40), random_rows(1, seed=2)[0]
    space_no = shelf.space("ann")
    held = HeldVectors()
    other = Shelf(path)
    with contextlib.closing(other.connection):
        for first, end in ((0, 10), (10, BLOCK_TURNS - 1), (BLOCK_TURNS - 1, BLOCK_TURNS), (BLOCK_TURNS, len(rows))):
            other.append(space_no, rows[first:end])
            found = shelf.cosines(held, space_no, query, len(rows))
            np.testing.assert_allclose(found[:end], rows[:end] @ query, atol=ROUNDED)
            assert np.isnan(found[end:]).all()


def test_an_older_snapshot_sees_no_more_than_it_holds(shelf: Shelf, path: Path) -> None:
    rows, query = random_rows(BLOCK_TURNS + 5), random_rows(1, seed=2)[0]
    space_no = shelf.space("ann")
    shelf.append(space_no, rows[:3])
    old, held = Shelf(path), HeldVectors()
    with contextlib.closing(old.connection):
        old.connection.execute("BEGIN")
        drive(served_set(old.transaction, space_no))
        shelf.append(space_no, rows[3:])
        whole = shelf.cosines(held, space_no, query, len(rows))
        assert not np.isnan(whole).any()
        before = old.cosines(held, space_no, query, len(rows))
        assert before[:3] == whole[:3]
        assert np.isnan(before[3:]).all()
        assert shelf.cosines(held, space_no, query, len(rows)) == whole


def test_vectors_are_read_once_while_there_is_room_and_again_when_they_were_dropped(shelf: Shelf) -> None:
    rows, query = random_rows(100), random_rows(1, seed=2)[0]
    spaces = [shelf.space(user) for user in ("ann", "anna", "a_b")]
    for space_no in spaces:
        shelf.append(space_no, rows)

    def reads(held: HeldVectors, *asked: int) -> int:
        before = shelf.transaction.read
        for space_no in asked:
            np.testing.assert_allclose(shelf.cosines(held, space_no, query, 100), rows @ query, atol=ROUNDED)
        return shelf.transaction.read - before

    one, two, three = spaces
    assert reads(HeldVectors(), one, two, three, one, two, three) == 3
    room = HeldVectors(most_bytes=2 * 100 * (DIMENSIONS + 8) + 5_000)
    assert reads(room, one, two, two, one) == 2
    assert reads(room, three, one) == 1, "the one not asked for longest is dropped"
    assert reads(room, two) == 1
    none = HeldVectors(most_bytes=10)
    assert reads(none, one, one) == 2


def test_after_forgetting_the_vectors_are_read_again(shelf: Shelf) -> None:
    rows = random_rows(5)
    space_no = shelf.space("ann")
    shelf.append(space_no, rows)
    held = HeldVectors()
    shelf.cosines(held, space_no, rows[0], 5)
    drive(shelf.transaction.execute("DELETE FROM engine_vectors WHERE space_no = :space_no", {"space_no": space_no}))
    held.forget([space_no])
    assert np.isnan(shelf.cosines(held, space_no, rows[0], 5)).all()


def test_a_vector_of_zeros_is_like_nothing_and_disturbs_nobody(shelf: Shelf) -> None:
    rows = np.concatenate([random_rows(1), np.zeros((1, DIMENSIONS), np.float32)])
    space_no = shelf.space("ann")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shelf.append(space_no, rows)
        assert shelf.cosines(HeldVectors(), space_no, rows[0], 2) == [pytest.approx(1.0), 0.0]
        assert shelf.cosines(HeldVectors(), space_no, rows[1], 2) == [0.0, 0.0]


def test_several_threads_ask_at_once_while_vectors_come_and_go(shelf: Shelf, path: Path) -> None:
    rows, query = random_rows(2 * BLOCK_TURNS), random_rows(1, seed=2)[0]
    expected = rows @ query
    spaces = [shelf.space(f"user {number}") for number in range(3)]
    held = HeldVectors(most_bytes=4 * BLOCK_TURNS * (DIMENSIONS + 8) + 5_000)  # two of the three spaces
    done = threading.Event()

    def ask() -> int:
        own, asked = Shelf(path), 0
        with contextlib.closing(own.connection):
            while not done.is_set() or not asked:
                for space_no in spaces:
                    found = np.array(own.cosines(held, space_no, query, len(rows)))
                    known = ~np.isnan(found)
                    np.testing.assert_allclose(found[known], expected[known], atol=ROUNDED)
                    assert known.tolist() == sorted(known.tolist(), reverse=True), "from the first on, without gaps"
                    asked += 1
        return asked

    with ThreadPoolExecutor(2) as pool:
        answers = [pool.submit(ask) for _ in range(2)]
        try:
            for first in range(0, len(rows), 256):
                for space_no in spaces:
                    shelf.append(space_no, rows[first : first + 256])
        finally:
            done.set()
        assert all(answer.result() >= 3 for answer in answers)
    for space_no in spaces:
        np.testing.assert_allclose(shelf.cosines(held, space_no, query, len(rows)), expected, atol=ROUNDED)
