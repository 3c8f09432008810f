"""What cannot be moved, or not now, is refused in one line that says why, and nothing is changed."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memory_gateway.kit.clock import system_clock
from memory_gateway.storage.migrate import migrate
from memory_gateway.storage.moving import target as targets
from memory_gateway.storage.moving.columns import MoveRefused
from memory_gateway.storage.moving.move import open_move
from memory_gateway.storage.postgres import PostgresDatabase
from tests.fakes.empty_postgres import all_rows_of, query
from tests.fakes.full_tables import new_database
from tests.storage.moving.conftest import change, full, migrated, moved, refusal, rows_of

pytestmark = pytest.mark.slow

HOLDER = """
import sys
from pathlib import Path
from memory_gateway.storage.sqlite import connect

connection = connect(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.read()
"""


def test_a_table_that_postgresql_does_not_have_is_not_left_behind_in_silence(path: Path, url: str) -> None:
    change(path, "CREATE TABLE later (id INTEGER PRIMARY KEY)")
    assert refusal(path, url) == "the schema of database_url has no table later"


def test_a_column_that_postgresql_does_not_have_is_not_left_behind_in_silence(path: Path, url: str) -> None:
    change(path, "ALTER TABLE users ADD COLUMN later TEXT")
    assert refusal(path, url) == "table users: only one of the databases has the column later"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_log SET action = 'other' WHERE id = (SELECT MAX(id) FROM audit_log)",
        "DELETE FROM audit_log WHERE id = (SELECT MAX(id) FROM audit_log)",
        "DELETE FROM audit_log",
        "INSERT INTO audit_log (id, user_id, at, action, object_type, object_id) VALUES ('n', 'n', 'n', 'n', 'n', 'n')",
    ],
)
def test_a_source_that_was_written_to_between_two_runs_is_refused(path: Path, url: str, statement: str) -> None:
    full(path)
    moved(path, url, batches=4)
    change(path, statement)
    line = refusal(path, url)
    assert line.startswith("table audit_log is not what was moved since 20")
    assert line.endswith("begin again with an empty database")


def test_a_folder_that_somebody_has_open_is_refused_at_once(path: Path, url: str) -> None:
    full(path)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        child.stdout.readline()
        began = time.monotonic()
        assert refusal(path, url) == f"{path} is in use; stop the server that has it, and whatever else reads it"
        assert time.monotonic() - began < 5
        child.stdin.close()
    assert query(url, "SELECT COUNT(*) FROM pg_tables WHERE schemaname = 'public'") == 0


def test_nobody_can_write_to_the_folder_while_it_is_moved(path: Path, url: str) -> None:
    full(path)
    program = "import sys, apsw; apsw.Connection(sys.argv[1]).execute('DELETE FROM users')"

    async def run() -> str:
        async with open_move(path, url, system_clock) as move:
            async for _ in move.batches():
                done = await asyncio.create_subprocess_exec(
                    sys.executable, "-c", program, str(path), stderr=asyncio.subprocess.PIPE
                )
                return (await done.communicate())[1].decode()
        return ""

    assert "BusyError" in asyncio.run(run())


def test_a_database_that_holds_data_already_is_refused(path: Path, url: str) -> None:
    full(path)
    migrated(url)
    query(url, "INSERT INTO users (user_id, folded_id, created_at) VALUES ('bob', 'bob', '')")
    assert refusal(path, url) == "database_url already holds data (in users); name an empty database"
    assert query(url, "SELECT COUNT(*) FROM users") == 1
    assert query(url, "SELECT to_regclass('sqlite_move')") is None


def test_a_move_from_another_folder_is_not_gone_on_with(path: Path, url: str, tmp_path: Path) -> None:
    full(path)
    other = tmp_path / "other.db"
    full(other, 12)
    moved(other, url, batches=1)
    assert "since 20" in (line := refusal(path, url))
    assert f"from {other}: it was written to, or is of another folder" in line


def test_what_a_server_without_users_left_on_the_target_is_no_data(path: Path, url: str) -> None:
    full(path)
    migrated(url)
    query(url, "INSERT INTO leases (name, holder, expires_at_ms) VALUES ('embed', 'gone', 1)")
    query(url, "INSERT INTO token_buckets (name, tokens, at_ms, full_at_ms) VALUES ('ann', 1, 1, 1)")
    moved(path, url)
    assert all_rows_of(url) == rows_of(path)


def test_a_server_on_the_target_is_refused(path: Path, url: str) -> None:
    full(path)

    async def run() -> None:
        database = PostgresDatabase(url)
        await migrate(database, system_clock)
        try:
            with pytest.raises(MoveRefused, match="a server is running on database_url"):
                async with open_move(path, url, system_clock):
                    pass
        finally:
            await database.close()

    asyncio.run(run())


def test_a_target_whose_tables_belong_to_something_else_is_left_as_it_is(path: Path, url: str) -> None:
    full(path)
    query(url, "CREATE TABLE users (name TEXT)")
    assert refusal(path, url) == 'database_url: relation "users" already exists'
    assert query(url, "SELECT COUNT(*) FROM pg_tables WHERE schemaname = 'public'") == 1


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ("postgresql://ann@127.0.0.1:1/x", "database_url: "),
        ("postgresql://ann:pa/ss@word@127.0.0.1:5432/x", "database_url cannot be read; it is postgresql://"),
    ],
)
def test_a_target_that_cannot_be_reached_is_said_without_its_password(path: Path, wrong: str, line: str) -> None:
    full(path)
    assert (said := refusal(path, wrong)).startswith(line)
    assert "pa/ss" not in said
    assert "ss@word" not in said


def test_a_folder_without_a_database_is_refused_and_stays_as_it_is(tmp_path: Path, url: str) -> None:
    path = tmp_path / "nothing" / "memory-gateway.db"
    assert refusal(path, url) == f"there is no database {path}; name the folder with --data-dir"
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database_is_refused(path: Path, url: str) -> None:
    path.write_bytes(b"not a database at all, but long enough to be taken for one. " * 200)
    assert refusal(path, url) == f"the database {path} cannot be used: file is not a database"


def test_a_folder_of_a_newer_version_is_refused(path: Path, url: str) -> None:
    change(path, "INSERT INTO schema_migrations VALUES (9999, 'later', '')")
    assert refusal(path, url) == f"{path}: the database has migrations this version does not know: [9999]"


def test_values_of_another_type_than_declared_are_converted_where_that_loses_nothing(path: Path, url: str) -> None:
    connection = new_database(path)
    insert = "INSERT INTO engine_columns (space_no, block_no, records) VALUES (1, ?, ?)"
    connection.execute(insert, (1, "ß"))
    connection.execute("INSERT INTO user_names VALUES (?, ?)", (b"ann", "ann"))
    connection.execute(
        "INSERT INTO audit_log (id, user_id, at, action, object_type, object_id) VALUES (1, 2, 3, 4, 5, 6)"
    )
    connection.execute(
        "INSERT INTO memory_attachments VALUES ('a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 2026, '7')"
    )
    connection.close()
    moved(path, url)
    there = all_rows_of(url)
    assert there["engine_columns"] == [(1, "ß".encode(), 1)]
    assert there["user_names"] == [("ann", "ann")]
    assert "2026" in there["memory_attachments"][0]


@pytest.mark.parametrize(
    ("value", "column", "kind"),
    [
        ("many", "claimed", "bigint"),
        (0.5, "claimed", "bigint"),
        (b"1", "claimed", "bigint"),
        ("nul\0", "folder", "text"),
    ],
)
def test_a_value_that_does_not_fit_is_named_by_its_table_row_and_column(
    path: Path, url: str, value: object, column: str, kind: str
) -> None:
    connection = new_database(path)
    row = {"user_id": "ann", "folder": "f", "expires_at_ms": 1, "claimed": 0, column: value}
    connection.execute("INSERT INTO file_intents VALUES (?, ?, ?, ?)", list(row.values()))
    connection.close()
    assert refusal(path, url) == (
        f"table file_intents, row user_id = 'ann', folder = {row['folder']!r}: {column} is not {kind}"
    )


def test_a_text_that_is_no_text_is_named_by_its_place(path: Path, url: str) -> None:
    change(path, "INSERT INTO user_names VALUES ('a', 'a'), ('b', CAST(x'ff' AS TEXT))")
    assert refusal(path, url) == "table user_names, row 2 of those in order: a text is not UTF-8"


def test_two_cannot_move_into_one_database_at_once(
    path: Path, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full(path)
    other = tmp_path / "other.db"
    full(other)
    monkeypatch.setitem(targets._SESSION, "lock_timeout", "100ms")

    async def run() -> None:
        async with open_move(path, url, system_clock):
            with pytest.raises(MoveRefused, match="somebody else is moving into this database"):
                async with open_move(other, url, system_clock):
                    pass

    asyncio.run(run())
