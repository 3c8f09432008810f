"""A data folder of an earlier release opens under this one, and everything is found again."""

from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from memory_gateway.demo.child import RunningServer
from memory_gateway.storage.migrate import migrations
from memory_gateway.storage.sqlite import connect
from tests.e2e.conftest import Person, StartServer
from tests.fakes.old_release import ERASED_KEY, KEY_SECRET, RELEASES, USER_KEYS, headers, unpack

pytestmark = pytest.mark.slow


def people(server: RunningServer) -> tuple[Person, Person]:
    return Person(server, "ann", USER_KEYS["ann"]), Person(server, "anna", USER_KEYS["anna"])


def texts(results: list[dict[str, Any]]) -> str:
    return " / ".join(result["text"] for result in results)


@pytest.mark.parametrize("release", sorted(path.name for path in RELEASES.iterdir()))
def test_everything_of_an_earlier_release_is_found_again(
    start_server: StartServer, tmp_path: Path, release: str
) -> None:
    path = unpack(release, tmp_path / "data")
    server = start_server(key_secret=KEY_SECRET)
    ann, anna = people(server)
    with closing(connect(path)) as connection:
        applied = connection.execute("SELECT number FROM schema_migrations ORDER BY number").fetchall()
    assert applied == [(migration.number,) for migration in migrations()]
    assert len(applied) > int(release)

    tea = ann.search("gunpowder", scope="resources")[0]
    assert "gunpowder tea with mint" in tea["text"]
    assert tea["attachments"][0]["name"] == "tea.txt"
    assert ann.http.get(f"/resources/{tea['resource_id']}/content").content == b"Ann drinks gunpowder tea with mint."
    assert "zeppelins" not in texts(ann.search("zeppelins"))
    boat = ann.search("Ottoline")[0]
    assert [attachment["name"] for attachment in boat["attachments"]] == ["list.txt"]
    assert "saffron" in texts(ann.search("saffron"))
    assert "龙井" in texts(ann.search("龙井茶园"))
    assert "marmalade" in texts(ann.search("marmalade"))
    violin = ann.search("Amati")[0]
    assert (violin["text"], violin["overridden"]) == ("The violin has a new bridge by Amati.", True)
    assert "lighthouse" not in texts(ann.search("lighthouse keeper"))
    history = ann.http.get(f"/memories/{boat['id']}/history").json()["history"]
    assert [entry["action"] for entry in history] == ["tombstone", "restore"]
    assert ann.search("train", agent_id="bot", app_id="work")[0]["memory_type"] == "agent_case"
    assert "Berlin" in texts(ann.search("where do I live", include_profile=True))

    assert "chapel" in texts(anna.search("bees"))
    assert "格拉茨" in texts(anna.search("蜂蜜"))
    assert anna.search("gunpowder", scope="resources", include_profile=False) == []
    assert "Ottoline" not in texts(anna.search("Ottoline"))


def test_stated_facts_and_thoughts_of_an_earlier_release_are_found_again(
    start_server: StartServer, tmp_path: Path
) -> None:
    unpack("0011", tmp_path / "data")
    server = start_server(key_secret=KEY_SECRET)
    with httpx.Client(base_url=f"{server.service_url}/api/v1", trust_env=False) as service:
        listed = service.get("/memories", params={"user_id": "ann", "limit": 1000}).json()
        assert listed["total"] == 42
        noodles = service.post("/memories/query", json={"user_id": "ann", "query_text": "recipe17 noodles"}).json()
        [recipe] = noodles["memories"]
        assert recipe["content"].startswith("Recipe 17: boil")
        assert service.get(f"/memories/{recipe['id']}").json()["memory"]["content"] == recipe["content"]
        again = service.post("/memories", json={"user_id": "ann", "content": recipe["content"]}).json()
        assert (again["merged"], again["memory"]["id"]) == (True, recipe["id"])
        many = service.get("/memories", params={"user_id": "many", "limit": 1000}).json()
        assert many["total"] == 519
        for memory in (many["memories"][0], many["memories"][-1]):
            found = service.post("/memories/query", json={"user_id": "many", "query_text": memory["content"]}).json()
            assert memory["id"] in [each["id"] for each in found["memories"]]
        [log] = service.get("/thinking", params={"user_id": "anna"}).json()["logs"]
        assert service.get(f"/thinking/{log['id']}").json()["thinking"]["content"] == "anna seems to like tea"
        assert service.get("/thinking/stats").json()["total_logs"] == 2


def test_users_of_an_earlier_release_go_on(start_server: StartServer, tmp_path: Path) -> None:
    unpack("0011", tmp_path / "data")
    server = start_server(key_secret=KEY_SECRET)
    ann, anna = people(server)
    gone = httpx.get(
        f"{server.url}/resources", headers={"X-User-ID": "gone", "X-User-Key": ERASED_KEY}, trust_env=False
    )
    assert gone.status_code == 401
    for taken in ("gone", "ANN"):
        made = httpx.post(
            f"{server.url}/users", json={"user_id": taken}, headers={"X-Admin-Key": server.admin_key}, trust_env=False
        )
        assert made.status_code == 409
    assert ann.add("The rowing boat got a new mast.", conversation="1").status_code == 200
    assert "mast" in texts(ann.search("mast"))
    assert anna.add("A foreign word in a chat of Ann's.", conversation="1").status_code == 403
    again = ann.upload("tea.txt", b"Ann drinks gunpowder tea with mint.")
    assert (again.status_code, again.json()["created"]) == (200, False)
    export = ann.http.get("/users/me/export")
    assert export.status_code == 200
    assert b"tea.txt" in export.content
    erased = httpx.delete(f"{server.url}/users/ann", headers=headers("ann"), trust_env=False)
    assert erased.json()["erased"] is True
    assert "chapel" in texts(anna.search("bees"))
