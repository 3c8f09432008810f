"""After an erasure no row of any table holds a word of the user; the id stays where it must, to be given to nobody."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from memory_gateway.demo.child import RunningServer, running_server
from memory_gateway.storage.choose import FILE_NAME
from memory_gateway.storage.sqlite import connect
from tests.e2e.conftest import ADMIN_KEY, Person, register
from tests.e2e.test_erased_words import GONE, KEPT, live
from tests.fakes.empty_postgres import all_rows_of, empty_postgres
from tests.fakes.full_tables import Rows, all_rows
from tests.fakes.gateways import KEY_SECRET

pytestmark = pytest.mark.slow

REMEMBER_THE_ID = {"users", "user_names", "audit_log"}

AllRows = Callable[[], Rows]


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[dict[str, str], AllRows]]:
    """What the server is told of it, and all its rows."""
    if request.param == "sqlite":

        def rows() -> Rows:
            with closing(connect(tmp_path / "data" / FILE_NAME)) as connection:
                return all_rows(connection)

        yield {}, rows
        return
    with empty_postgres() as server:
        url = server.new()
        yield {"database_url": url, "key_secret": KEY_SECRET}, lambda: all_rows_of(url)


def tables_with(rows: Rows, word: str) -> set[str]:
    """Those of which a value holds the word, and not only as a part of a longer one."""
    pattern = re.compile(rf"(?<![A-Za-z]){re.escape(word)}(?![A-Za-z])".encode())
    return {
        name
        for name, found in rows.items()
        for row in found
        for value in row
        if pattern.search(value if isinstance(value, bytes) else str(value).encode())
    }


def live_everywhere(person: Person, server: RunningServer, word: str) -> None:
    """As elsewhere, and with an agent, in another project, by stated facts and in thoughts."""
    live(person, word)
    agent = {"sender_id": f"{word}bot", "role": "assistant", "timestamp": 1_780_000_000_000, "content": f"{word} done"}
    body = {"session_id": f"{word} x", "project_id": word, "app_id": word, "messages": [agent]}
    assert person.http.post("/memories/add", json=body).status_code == 200
    with httpx.Client(base_url=f"{server.service_url}/api/v1", trust_env=False) as service:
        for number in range(3):
            fact = {"user_id": person.user_id, "content": f"fact {number} of {word}", "keywords": [word]}
            memory = service.post("/memories", json={**fact, "session_id": word}).json()["memory"]
            assert service.get(f"/memories/{memory['id']}").status_code == 200
        thought = {"user_id": person.user_id, "content": f"{word} again", "tool_calls": f'["{word}"]'}
        assert service.post("/thinking", json=thought).is_success
    assert person.search(word)


def test_only_the_id_of_an_erased_user_stays_and_only_where_it_must(
    database: tuple[dict[str, str], AllRows], tmp_path: Path
) -> None:
    settings, rows = database
    with running_server(tmp_path, ADMIN_KEY, embedder="none", rate_limit="500", **settings) as server:
        ann, anna = register(server, "ann"), register(server, "anna")
        for person, word in ((ann, GONE), (anna, KEPT)):
            live_everywhere(person, server, word)
        time.sleep(0.5)  # what is written a moment later
        before = rows()
        assert len(tables_with(before, "ann")) > len(REMEMBER_THE_ID) + 5
        reply = httpx.delete(f"{server.url}/users/ann", headers={"X-Admin-Key": ADMIN_KEY}, timeout=60, trust_env=False)
        assert reply.status_code == 200, reply.text
        after = rows()
        assert {name for name, found in after.items() if GONE in str(found)} == set()
        assert tables_with(after, GONE) == set()
        time.sleep(1.5)  # a bucket of the limits is full again
        assert anna.search(KEPT)
        time.sleep(1.0)
        after = rows()
        assert tables_with(after, "ann") == REMEMBER_THE_ID
        assert tables_with(after, "anna") == tables_with(before, "anna")
        assert {name for name, found in after.items() if KEPT in str(found)} == {
            name for name, found in before.items() if KEPT in str(found)
        }
