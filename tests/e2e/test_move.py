"""A data folder is moved to PostgreSQL by the command, and people are answered as before."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from memory_gateway.demo.child import RunningServer, running_server
from tests.e2e.conftest import ADMIN_KEY, Person, register
from tests.e2e.test_starting import run
from tests.fakes.empty_postgres import EmptyPostgres, empty_postgres, query
from tests.fakes.old_release import KEY_SECRET, USER_KEYS, answers, unpack

pytestmark = pytest.mark.slow

SERVE = {"embedder": "none", "key_secret": KEY_SECRET}


@pytest.fixture(scope="module")
def postgres() -> Iterator[EmptyPostgres]:
    with empty_postgres() as server:
        yield server


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """Of an earlier release, whose secret made itself."""
    path = tmp_path / "data"
    unpack("0011", path)
    (path / "key.secret").write_text(f"{KEY_SECRET}\n", "utf-8")
    (path / "key.secret").chmod(0o600)
    return path


def migrate(data_dir: Path, url: str, key_secret: str = KEY_SECRET) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_GATEWAY_")}
    chosen = {"MEMORY_GATEWAY_DATABASE_URL": url, "MEMORY_GATEWAY_KEY_SECRET": key_secret}
    return subprocess.run(
        [sys.executable, "-m", "memory_gateway.cli", "migrate", "--data-dir", str(data_dir)],
        cwd=data_dir.parent,
        env=inherited | chosen,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def refused(folder: Path, *arguments: str) -> str:
    return run(folder, "migrate", "--data-dir", str(folder / "data"), *arguments)


def live(server: RunningServer) -> None:
    """What this release writes too: a chat, a file, an override, a tombstone and a stated fact."""
    ann = Person(server, "ann", USER_KEYS["ann"])
    assert ann.add("The gunpowder tea comes from a shop in Berlin.", conversation="9").status_code == 200
    assert ann.http.post("/memories/flush", json={"conversation_id": "9"}).status_code == 200
    assert ann.upload("bees.txt", b"Bees like lavender near a chapel.").status_code == 201
    shop = next(found for found in ann.search("shop Berlin") if found["memory_type"] == "episode")
    assert ann.http.put(f"/memories/{shop['id']}", json={"text": "The tea shop has moved to Graz."}).status_code == 200
    cellar = next(found for found in ann.search("violin Amati") if found["memory_type"] == "episode")
    assert ann.http.delete(f"/memories/{cellar['id']}").status_code == 200
    fact = {"user_id": "anna", "content": "Anna collects old maps.", "category": "user_preference"}
    assert httpx.post(f"{server.service_url}/api/v1/memories", json=fact, trust_env=False).status_code == 201


def test_everybody_is_answered_as_before_and_goes_on(postgres: EmptyPostgres, tmp_path: Path, data_dir: Path) -> None:
    url = postgres.new()
    with running_server(tmp_path, ADMIN_KEY, **SERVE) as server:
        live(server)
        before = answers(server)
    assert "The tea shop has moved to Graz." in str(before)
    assert "bridge by Amati" not in str([value for key, value in before.items() if "search" in key])

    done = migrate(data_dir, url)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split("  ")[0] == "table"
    assert ["users", "3", "3"] in [line.split() for line in lines]
    assert f"stay in {data_dir / 'storage'}, and" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr
    assert "\r" not in done.stdout + done.stderr
    assert KEY_SECRET not in done.stdout + done.stderr

    with running_server(tmp_path, ADMIN_KEY, database_url=url, **SERVE) as server:
        assert answers(server) == before
        ann = Person(server, "ann", USER_KEYS["ann"])
        assert ann.add("The rowing boat got a new mast.", conversation="1").status_code == 200
        assert "mast" in str(ann.search("mast"))
        assert ann.upload("bees.txt", b"Bees like lavender near a chapel.").json()["created"] is False
        bob = register(server, "bob")
        assert bob.add("Bob sails too.", conversation="bob").status_code == 200
        assert [found["text"] for found in bob.search("mast")] == []
        recipe = next(value for key, value in before.items() if "memories?limit" in key)[1]["memories"][-1]
        again = httpx.post(
            f"{server.service_url}/api/v1/memories",
            json={"user_id": "ann", "content": recipe["content"]},
            trust_env=False,
        ).json()
        assert (again["merged"], again["memory"]["id"]) == (True, recipe["id"])

    once_more = migrate(data_dir, url)
    assert once_more.returncode == 0, once_more.stderr
    assert "nothing was done now" in once_more.stdout
    assert query(url, "SELECT COUNT(*) FROM users") == 4


def test_counts_that_differ_end_with_1_and_show_where(postgres: EmptyPostgres, tmp_path: Path, data_dir: Path) -> None:
    url = postgres.new()
    with running_server(tmp_path, ADMIN_KEY, database_url=url, **SERVE):
        pass
    query(
        url,
        "DELETE FROM audit_log",
        "CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN DELETE FROM audit_log; RETURN NULL; END'",
        "CREATE TRIGGER meddle AFTER INSERT ON users EXECUTE FUNCTION meddle()",
    )
    done = migrate(data_dir, url)
    assert done.returncode == 1
    moved = query(url, "SELECT row_count FROM sqlite_move_batches WHERE table_name = 'audit_log'")
    different = [line.split() for line in done.stdout.splitlines() if "differs" in line]
    assert different == [["audit_log", str(moved), "0", "differs"]]
    assert done.stderr.splitlines()[-1].startswith("Error: the counts differ")


def test_a_folder_that_is_being_served_is_refused(postgres: EmptyPostgres, tmp_path: Path, data_dir: Path) -> None:
    url = postgres.new()
    with running_server(tmp_path, ADMIN_KEY, **SERVE):
        done = migrate(data_dir, url)
    assert (done.returncode, done.stdout) == (1, "")
    path = data_dir / "memory-gateway.db"
    assert done.stderr == f"Error: {path} is in use; stop the server that has it, and whatever else reads it\n"


def test_a_target_that_is_being_served_is_refused(postgres: EmptyPostgres, tmp_path: Path, data_dir: Path) -> None:
    url = postgres.new()
    with running_server(tmp_path, ADMIN_KEY, database_url=url, **SERVE):
        done = migrate(data_dir, url)
    assert done.stderr == "Error: a server is running on database_url; stop it until everything is moved\n"


def test_another_key_secret_than_the_folders_is_refused_and_none_is_shown(data_dir: Path) -> None:
    done = migrate(data_dir, "postgresql://127.0.0.1:1/x", "another secret than that")
    file = data_dir / "key.secret"
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"Error: key_secret is not the content of {file}, which all user keys of this folder need\n"


def test_what_is_missing_is_named(tmp_path: Path, data_dir: Path) -> None:
    assert refused(tmp_path).startswith("Error: database_url is not set: ")
    line = refused(tmp_path, "--database-url", "postgresql://127.0.0.1:1/x")
    assert line.startswith("Error: settings: key_secret must be set where a database_url is")
    assert "key.secret" in line
