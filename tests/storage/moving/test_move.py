"""Everything that is in the data folder is in PostgreSQL afterwards, once, whatever comes in between."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memory_gateway.kit.clock import system_clock
from memory_gateway.storage.moving import source as sources
from memory_gateway.storage.moving.columns import MoveRefused
from memory_gateway.storage.moving.move import Count, open_move
from tests.fakes.empty_postgres import all_rows_of, query
from tests.fakes.full_tables import new_database, tables
from tests.storage.moving.conftest import change, full, migrated, moved, rows_of

pytestmark = pytest.mark.slow

# Dies by itself right after so many batches' rows have been sent, if it is to.
MOVER = """
import asyncio, os, signal, sys
from pathlib import Path
import asyncpg
from memory_gateway.kit.clock import system_clock
from memory_gateway.storage.moving import move, source

source.BATCH_BYTES = 2000
copies = int(sys.argv[3])
copy = asyncpg.Connection.copy_records_to_table

async def copy_and_die(*arguments, **options):
    global copies
    await copy(*arguments, **options)
    copies -= 1
    if copies == 0:
        os.kill(os.getpid(), signal.SIGKILL)

async def main():
    asyncpg.Connection.copy_records_to_table = copy_and_die
    async with move.open_move(Path(sys.argv[1]), sys.argv[2], system_clock) as begun:
        async for rows in begun.batches():
            print(rows, flush=True)

asyncio.run(main())
"""
END_OTHERS = """
SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


def test_every_row_of_every_table_arrives_as_it_was(path: Path, url: str) -> None:
    full(path)
    counts = moved(path, url)
    there = rows_of(path)
    assert len(there) > 25
    assert min(map(len, there.values())) == 6
    assert all_rows_of(url) == there
    assert counts == [Count(name, len(rows), len(rows)) for name, rows in there.items()]


def test_a_data_folder_without_rows_can_be_moved(path: Path, url: str) -> None:
    new_database(path).close()
    assert {(count.source, count.target) for count in moved(path, url)} == {(0, 0)}


def test_a_move_that_is_killed_again_and_again_ends_with_the_same_rows(
    path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    full(path, 60)
    monkeypatch.setattr(sources, "BATCH_BYTES", 2000)
    moved(path, url, batches=1)
    for kills in range(1, 5):
        there = query(url, "SELECT COUNT(*) FROM sqlite_move_batches")
        killed_after(path, url, lines=there + 20, pause=0.003 * kills)
        assert query(url, "SELECT COUNT(*) FROM sqlite_move_batches") >= there + 20
    assert set(moved(path, url)) == {Count(name, len(rows), len(rows)) for name, rows in rows_of(path).items()}
    assert all_rows_of(url) == rows_of(path)


def test_a_batch_whose_rows_came_and_whose_note_did_not_comes_again_whole(
    path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    full(path, 60)
    monkeypatch.setattr(sources, "BATCH_BYTES", 2000)
    for copies in (1, 5, 30):
        child = subprocess.run([sys.executable, "-c", MOVER, str(path), url, str(copies)], check=False)
        assert child.returncode == -signal.SIGKILL
    assert query(url, "SELECT COUNT(*) FROM sqlite_move_batches") == 0 + 4 + 29
    moved(path, url)
    assert all_rows_of(url) == rows_of(path)


def killed_after(path: Path, url: str, *, lines: int, pause: float) -> None:
    """Run until so many batches are done, those that were there before included, and a little longer."""
    child = subprocess.Popen([sys.executable, "-c", MOVER, str(path), url, "-1"], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    for _ in range(lines):
        assert child.stdout.readline()
    time.sleep(pause)
    os.kill(child.pid, signal.SIGKILL)
    child.stdout.close()
    assert child.wait() == -signal.SIGKILL


def test_a_run_after_a_finished_one_does_nothing(path: Path, url: str) -> None:
    full(path)
    counts = moved(path, url)
    query(url, "DELETE FROM users")  # the target lives, and what was moved does not come back

    async def again() -> tuple[str | None, list[Count]]:
        async with open_move(path, url, system_clock) as move:
            return move.finished_at, await move.moved()

    finished_at, said = asyncio.run(again())
    assert finished_at is not None
    assert said == counts
    assert query(url, "SELECT COUNT(*) FROM users") == 0


def test_a_source_that_was_written_to_since_it_was_moved_is_seen(path: Path, url: str) -> None:
    full(path)
    moved(path, url)
    change(path, "INSERT INTO user_names VALUES ('new', 'new')")

    async def again() -> list[Count]:
        async with open_move(path, url, system_clock) as move:
            return [count for count in await move.moved() if count.source != count.target]

    assert asyncio.run(again()) == [Count("user_names", 7, 6)]


def test_numbers_go_on_after_the_highest_that_was_ever_given(path: Path, url: str) -> None:
    connection = new_database(path)
    spaces = "INSERT INTO engine_spaces (space_no, user_id, app_id, project_id) VALUES (?, 'ann', ?, 'p')"
    connection.execute(spaces, (7, "a"))
    connection.execute(spaces, (41, "b"))
    connection.execute("DELETE FROM engine_spaces WHERE space_no = 41")
    connection.execute("INSERT INTO memory_users (user_no, user_id) VALUES (9, 'ann')")
    connection.close()
    moved(path, url)
    assert (
        query(url, "INSERT INTO engine_spaces (user_id, app_id, project_id) VALUES ('x', 'x', 'x') RETURNING space_no")
        == 42
    )
    assert query(url, "INSERT INTO memory_users (user_id) VALUES ('x') RETURNING user_no") == 10


def test_large_tables_go_in_batches_of_some_mebibytes(path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    full(path, 60)
    monkeypatch.setattr(sources, "BATCH_BYTES", 10_000)
    moved(path, url)
    assert query(url, "SELECT COUNT(*) FROM sqlite_move_batches WHERE table_name = 'engine_columns'") == 4
    assert query(url, "SELECT SUM(row_count) FROM sqlite_move_batches WHERE table_name = 'engine_columns'") == 40
    assert all_rows_of(url) == rows_of(path)


def test_rows_that_somebody_else_writes_to_the_target_show_in_the_counts(path: Path, url: str) -> None:
    full(path)

    async def run() -> list[Count]:
        async with open_move(path, url, system_clock) as move:
            async for _ in move.batches():
                pass
            await asyncio.to_thread(query, url, "DELETE FROM users")
            return [count for count in await move.finish() if count.source != count.target]

    assert asyncio.run(run()) == [Count("users", 6, 0)]
    assert query(url, "SELECT finished_at FROM sqlite_move") is None


def test_both_schemas_have_the_same_tables(path: Path, url: str) -> None:
    connection = new_database(path)
    names = tables(connection)
    connection.close()
    migrated(url)
    assert sorted(all_rows_of(url)) == names


def test_a_server_that_goes_away_in_between_costs_nothing_but_another_run(path: Path, url: str) -> None:
    full(path)

    async def run() -> None:
        async with open_move(path, url, system_clock) as move:
            async for _ in move.batches():
                await asyncio.to_thread(query, url, END_OTHERS)

    with pytest.raises(MoveRefused, match=r"^database_url: the connection was lost; run the command again"):
        asyncio.run(run())
    moved(path, url)
    assert all_rows_of(url) == rows_of(path)
