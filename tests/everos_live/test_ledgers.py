"""What EverOS has still to do, as its ledgers tell it."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.everos_live.ledgers import unfinished

TABLES = {
    "ome.aps.db": "CREATE TABLE apscheduler_jobs (id TEXT)",
    "ome.db": "CREATE TABLE run_record (event_id TEXT, strategy_name TEXT, attempt INTEGER, status TEXT)",
    "system.db": "CREATE TABLE md_change_state (md_path TEXT, mtime FLOAT, status TEXT)",
}
FILE = "app/project/users/ann/episodes/today.md"


def write(root: Path, ledger: str, sql: str, *values: object) -> None:
    with closing(sqlite3.connect(root / ".index" / "sqlite" / ledger)) as connection, connection:
        connection.execute(sql, values)


def note_file(root: Path, status: str) -> None:
    mtime = (root / FILE).stat().st_mtime
    write(root, "system.db", "INSERT INTO md_change_state VALUES (?, ?, ?)", FILE, mtime, status)


def note_run(root: Path, attempt: int, status: str) -> None:
    write(root, "ome.db", "INSERT INTO run_record VALUES ('e', 'extract_facts', ?, ?)", attempt, status)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".index" / "sqlite").mkdir(parents=True)
    for ledger, table in TABLES.items():
        write(tmp_path, ledger, table)
    (tmp_path / FILE).parent.mkdir(parents=True)
    (tmp_path / FILE).touch()
    return tmp_path


def test_a_file_is_done_once_its_last_state_is_in_the_index(root: Path) -> None:
    assert unfinished(root) == [f"{FILE} is not in the index"]
    note_file(root, "done")
    assert unfinished(root) == []
    os.utime(root / FILE, (1.5, 1.5))
    assert unfinished(root) == [f"{FILE} is not in the index"]


def test_a_file_that_waits_for_the_index_is_not_done(root: Path) -> None:
    note_file(root, "pending")
    assert unfinished(root) == [f"{FILE} is not in the index"]


@pytest.mark.parametrize(("job", "left"), [("run-1", ["run run-1 waits"]), ("cron::reflect", []), ("idle::x", [])])
def test_a_run_that_waits_is_not_done_but_what_comes_by_the_clock_does_not_count(
    root: Path, job: str, left: list[str]
) -> None:
    note_file(root, "done")
    write(root, "ome.aps.db", "INSERT INTO apscheduler_jobs VALUES (?)", job)
    assert unfinished(root) == left


@pytest.mark.parametrize(
    ("attempts", "left"),
    [
        (["success"], []),
        (["running"], ["extract_facts runs"]),
        (["failed"], ["extract_facts runs"]),
        (["failed", "running"], ["extract_facts runs"]),
        (["failed", "success"], []),
        (["failed", "dead_letter"], []),
    ],
)
def test_a_run_is_done_when_its_last_attempt_is(root: Path, attempts: list[str], left: list[str]) -> None:
    note_file(root, "done")
    for number, status in enumerate(attempts):
        note_run(root, number, status)
    assert unfinished(root) == left
