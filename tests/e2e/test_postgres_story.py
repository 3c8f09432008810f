"""The whole story on PostgreSQL, and starts that cannot go well: the password shows nowhere."""

import asyncio
import io
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from memory_gateway.demo.child import free_port, running_server
from memory_gateway.storage.migrate import migrations
from tests.e2e.conftest import ADMIN_KEY, register
from tests.e2e.test_large_files import book, wait_until_indexed
from tests.e2e.test_starting import run
from tests.fakes.databases import database_url, on_server
from tests.fakes.empty_postgres import query
from tests.fakes.gateways import KEY_SECRET
from tests.fakes.postgres import running_server as running_postgres

pytestmark = pytest.mark.slow

PASSWORD = "swordfish-9/@"
IN_URL = "swordfish-9%2F%40"


@pytest.fixture(scope="module")
def postgres() -> Iterator[Any]:
    """A server that asks ``keeper`` for a password."""
    with running_postgres() as server:
        rules = server.pgdata / "pg_hba.conf"
        rules.write_text(f"local all keeper scram-sha-256\n{rules.read_text('utf-8')}", "utf-8")
        role = f"CREATE ROLE keeper LOGIN PASSWORD '{PASSWORD}'"
        asyncio.run(on_server(server.get_uri(), "SELECT pg_reload_conf()", role))
        yield server


@pytest.fixture
def url(postgres: Any, request: pytest.FixtureRequest) -> str:
    name = f"story_{abs(hash(request.node.name))}"
    asyncio.run(on_server(postgres.get_uri(), f"CREATE DATABASE {name} OWNER keeper"))
    return database_url(postgres.get_uri(), name).replace("postgres:@", f"keeper:{IN_URL}@")


def config(folder: Path, **settings: str) -> Path:
    """A settings file, so that nothing is in the environment."""
    path = folder / "memory-gateway.toml"
    path.write_text("".join(f'{name} = "{value}"\n' for name, value in settings.items()), "utf-8")
    return path


def processes(pid: int) -> list[psutil.Process]:
    server = psutil.Process(pid)
    return [server, *server.children(recursive=True)]


def listed(pid: int) -> str:
    """What the list of processes shows of the server, its workers and their children, with their environments."""
    shown = []
    for process in processes(pid):
        try:
            shown.append(f"{process.cmdline()} {process.environ()}")
        except psutil.NoSuchProcess:
            continue
    return "\n".join(shown)


def test_accounts_files_memories_edits_export_and_erasure_by_two_workers(url: str, tmp_path: Path) -> None:
    config(tmp_path, database_url=url, key_secret=KEY_SECRET)
    with running_server(tmp_path, ADMIN_KEY, embedder="none", workers="2", log_level="debug") as server:
        ann, anna = register(server, "ann"), register(server, "anna")
        assert ann.add("The gunpowder tea comes from a shop in Berlin.").status_code == 200
        assert anna.add("Anna keeps bees behind the chapel.", conversation="2").status_code == 200
        small = ann.upload("tea.txt", b"Ann drinks gunpowder tea with mint.").json()["resource"]
        large_bytes = book(2)
        large = ann.upload("book.txt", large_bytes).json()["resource"]
        assert (small["status"], large["status"]) == ("indexed", "stored")
        seen, children = "", 0
        while ann.http.get(f"/resources/{large['id']}").json()["status"] == "stored":
            seen += listed(server.pid)
            children += "memory_gateway.upstream.indexing" in seen
            time.sleep(0.05)
        assert children
        assert "swordfish" not in seen
        assert wait_until_indexed(ann, large["id"])["status"] == "indexed"
        assert "place2000 " in ann.search("place2000", scope="resources")[0]["text"]
        for method in ("keyword", "hybrid", "agentic"):
            assert "Berlin" in str(ann.search("gunpowder tea shop", method=method)), method
        refused = ann.http.post("/memories/search", json={"query": "tea", "method": "vector"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (422, "upstream_error")
        assert "gunpowder" not in str(anna.search("gunpowder", top_k=-1))

        [memory] = [found for found in ann.search("Berlin") if "Berlin" in found["text"]]
        path = f"/memories/{memory['id']}"
        assert ann.http.put(path, json={"text": "The gunpowder tea comes from Hamburg."}).status_code == 200
        assert "Hamburg" in str(ann.search("gunpowder shop"))
        assert ann.http.delete(path).status_code == 200
        assert "Hamburg" not in str(ann.search("gunpowder shop"))
        assert ann.http.post(f"{path}/restore").status_code == 200
        assert "Hamburg" in str(ann.search("gunpowder shop"))

        state = {"user_id": "ann", "content": "Ann lives in Graz.", "category": "personal_info"}
        assert httpx.post(f"{server.service_url}/api/v1/memories", json=state, trust_env=False).status_code < 300
        assert "Graz" in str(ann.search("where does Ann live"))

        export = zipfile.ZipFile(io.BytesIO(ann.http.get("/users/me/export").content))
        assert export.testzip() is None
        assert large_bytes in [export.read(name) for name in export.namelist()]
        assert "chapel" not in str([export.read(name) for name in export.namelist() if name.endswith(".jsonl")])

        health = ann.http.get("/health")
        assert health.json()["database"] == {"store": "postgresql", "healthy": True}
        assert health.json()["capabilities"]["vector"] is False
        assert not any(word in health.text for word in ("keeper", "swordfish", "story_", "/tmp"))

        erased = ann.http.delete("/users/ann")
        assert erased.json()["erased"] is True, erased.text
        assert ann.http.get("/resources").status_code == 401
        assert "chapel" in str(anna.search("bees"))
    log = server.log.read_text("utf-8")
    assert "Traceback" not in log
    assert "swordfish" not in log


def start(folder: Path, **settings: str) -> str:
    """The one line with which it ends."""
    path = config(folder, key_secret=KEY_SECRET, embedder="none", **settings)
    ports = ("--gateway-port", str(free_port()), "--service-port", str(free_port()))
    return run(folder, "serve", "--config", str(path), *ports)


def test_a_wrong_password(url: str, tmp_path: Path) -> None:
    line = start(tmp_path, database_url=url.replace(IN_URL, "codfish-8"))
    assert line == 'Error: database_url: the database cannot be used: password authentication failed for user "keeper"'


def test_a_database_that_is_not_there(postgres: Any, tmp_path: Path) -> None:
    line = start(tmp_path, database_url=database_url(postgres.get_uri(), "nowhere"))
    assert line == 'Error: database_url: the database cannot be used: database "nowhere" does not exist'


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        (f"postgresql://keeper:{IN_URL}@127.0.0.1:1/memory", "Connect call failed ('127.0.0.1', 1)"),
        (f"postgresql://keeper:{IN_URL}@/memory?host=/nowhere", "No such file or directory"),
        ("postgresql://keeper:swordfish/9@127.0.0.1/memory", "the database's address cannot be read"),
        (f"postgresql://keeper:{IN_URL}@127.0.0.1:many/memory", "the database's address cannot be read"),
    ],
)
def test_a_server_that_is_not_there(tmp_path: Path, address: str, reason: str) -> None:
    line = start(tmp_path, database_url=address)
    assert line.startswith("Error: database_url: the database cannot be used: ")
    assert reason in line
    assert "swordfish" not in line


def test_a_schema_of_a_newer_version(url: str, tmp_path: Path) -> None:
    query(
        url,
        "CREATE TABLE schema_migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL)",
        "INSERT INTO schema_migrations VALUES (9999, 'later', '')",
    )
    assert start(tmp_path, database_url=url) == (
        "Error: database_url: the database cannot be used: "
        "the database has migrations this version does not know: [9999]"
    )


def test_a_schema_of_an_older_version_is_brought_up_to_this_one(url: str, tmp_path: Path) -> None:
    first, *later = migrations("migrations_postgres")
    query(
        url,
        "CREATE TABLE schema_migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL)",
        *first.statements,
        f"INSERT INTO schema_migrations VALUES ({first.number}, '{first.name}', '')",
    )
    with running_server(tmp_path, ADMIN_KEY, embedder="none", database_url=url, key_secret=KEY_SECRET) as server:
        ann = register(server, "ann")
        assert ann.add("green tea").status_code == 200
        assert ann.search("tea")
    assert query(url, "SELECT MAX(number) FROM schema_migrations") == later[-1].number
