"""What the gateway promises, end to end over HTTP, on a real EverOS."""

import io
import zipfile
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from memory_gateway.kit.clock import system_clock
from tests.e2e.conftest import Person
from tests.everos_live.conftest import Newcomer
from tests.everos_live.people import Settle, chat, chats, flush, search, tell

pytestmark = pytest.mark.live

NOTES = b"The tern feeder on the north pier needs new rope."
TOOLS = ("read_logs", "check_config", "edit_config")


def test_each_scope_finds_its_own_and_together_each_memory_once(newcomer: Newcomer, settle: Settle) -> None:
    fay, fays = newcomer("fay"), newcomer("fays")
    fay.upload("pier.txt", NOTES)
    tell(fay, "A note: the heron gateway listens on port 9000.", "heron")
    tell(fay, "A note: tea is in the kitchen.", "tea")
    tell(fays, "A note: this one is mine alone.", "heron")
    settle()

    def found(scope: str | list[str], **options: Any) -> list[tuple[str, str]]:
        memories = search(fay, "a note", scope=scope, **options)
        return sorted(zip([one["source_scope"] for one in memories], chats(memories), strict=True))

    heron = {"conversation_id": chat(fay, "heron")}
    (pier,) = chats(search(fay, "a note", scope="resources"))
    assert pier.startswith(f"resource:{fay.user_id}:")
    assert found("current_chat", **heron) == [("current_chat", "heron")]
    assert found("current_chat") == []
    assert found("all_user_memory") == [("all_user_memory", name) for name in ("heron", pier, "tea")]
    everywhere = [("all_user_memory", "tea"), ("current_chat", "heron"), ("resources", pier)]
    assert found(["all_user_memory", "resources", "current_chat"], **heron) == everywhere


def test_another_users_chat_is_neither_written_nor_searched(newcomer: Newcomer, settle: Settle) -> None:
    flo, flos = newcomer("flo"), newcomer("flos")
    tell(flo, "A note: the heron gateway listens on port 9000.")
    settle()
    assert flos.add("me too", conversation=chat(flo)).status_code == 403
    flo.add("A note that is still open.", conversation=chat(flo))
    for scope in ("current_chat", "all_user_memory"):
        assert search(flos, "a note", scope=scope, conversation_id=chat(flo)) == []


def test_filters_narrow_a_scope_and_never_widen_it(newcomer: Newcomer, settle: Settle) -> None:
    gil = newcomer("gil")
    for name in ("tea", "rope"):
        tell(gil, f"A note on {name}.", name)
    settle()
    tea, rope = ({"session_id": f"chat:{chat(gil, name)}"} for name in ("tea", "rope"))

    def kept(filters: dict[str, Any]) -> list[str]:
        options = {"scope": "current_chat", "conversation_id": chat(gil, "tea")}
        return chats(search(gil, "note", filters=filters, **options))

    assert kept({"parent_type": "memcell"}) == ["tea"]
    assert kept(rope) == []
    assert kept({"OR": [rope, tea]}) == ["tea"]
    assert chats(search(gil, "note", filters=rope)) == ["rope"]
    refused = gil.http.post("/memories/search", json={"query": "note", "filters": {"owner_id": "ann"}})
    assert refused.status_code == 422
    assert refused.json()["error"]["details"]["upstream"]["code"] == "INVALID_INPUT"
    assert "'owner_id' is reserved" in refused.json()["error"]["message"]


@pytest.mark.parametrize("method", ["keyword", "vector", "hybrid", "agentic"])
def test_every_method_and_option_reaches_it(newcomer: Newcomer, settle: Settle, method: str) -> None:
    hal = newcomer(f"hal-{method}")
    tell(hal, "The zeppelin lands on Tuesday.")
    settle()
    options = {"top_k": -1, "radius": 0.1, "include_profile": True, "enable_llm_rerank": True}
    found = search(hal, "When does the zeppelin land?", method=method, **options)
    assert all(one["raw"]["user_id"] == hal.user_id for one in found)
    if method != "keyword":  # which on a young root does not know every word yet
        assert "zeppelin lands" in found[0]["text"]


@pytest.mark.parametrize("method", ["vector", "hybrid", "agentic"])
def test_a_deleted_memory_stays_away_until_it_is_restored(newcomer: Newcomer, settle: Settle, method: str) -> None:
    ida = newcomer(f"ida-{method}")
    for name in ("kettle", "rope"):
        tell(ida, f"The {name} is broken.", name)
    settle()
    victim, other = search(ida, "Is the kettle broken?", method=method)
    assert chats([victim, other]) == ["kettle", "rope"]
    path = f"/memories/{quote(victim['id'], safe='')}"
    assert ida.http.delete(path).status_code == 200
    assert chats(search(ida, "Is the kettle broken?", method=method, top_k=1)) == ["rope"]
    assert ida.http.post(f"{path}/restore").status_code == 200
    assert search(ida, "Is the kettle broken?", method=method)[0]["id"] == victim["id"]


def test_an_override_is_shown_and_found_and_taken_back(newcomer: Newcomer, settle: Settle) -> None:
    jo = newcomer("jo")
    tell(jo, "The kettle is broken.")
    settle()
    original = search(jo, "kettle")[0]
    path = f"/memories/{quote(original['id'], safe='')}"
    changed = jo.http.put(path, json={"text": "The samovar was mended.", "reason": "it was"})
    assert (changed.status_code, changed.json()["override"]["version"]) == (200, 1)
    (shown,) = search(jo, "samovar")
    assert (shown["text"], shown["overridden"], shown["id"]) == ("The samovar was mended.", True, original["id"])
    assert {**shown["raw"], "score": 0} == {**original["raw"], "score": 0}
    assert jo.http.delete(f"{path}/override").status_code == 200
    assert search(jo, "kettle")[0]["text"] == original["text"]
    actions = [entry["action"] for entry in jo.http.get(f"{path}/history").json()["history"]]
    assert actions == ["override", "override_removed"]


def test_an_agents_case_is_found_by_whose_session_it_was(newcomer: Newcomer, settle: Settle) -> None:
    kim, kimi = newcomer("kim"), newcomer("kimi")
    agent = f"agent-of-{kim.user_id}"
    body = {"conversation_id": chat(kim), "messages": trajectory(kim, agent)}
    assert kim.http.post("/memories/add", json=body).status_code == 200
    flush(kim)
    settle()
    (found,) = search(kim, "why does the falcon fail?", agent_id=agent)
    assert (found["memory_type"], found["raw"]["agent_id"]) == ("agent_case", agent)
    assert "read_logs" in found["text"]
    narrowed = search(kim, "falcon", agent_id=agent, scope="current_chat", conversation_id=chat(kim))
    assert chats(narrowed) == ["talk"]
    assert search(kimi, "why does the falcon fail?", agent_id=agent) == []


def trajectory(person: Person, agent: str) -> list[dict[str, Any]]:
    start = system_clock()
    said: list[dict[str, Any]] = [{"sender_id": person.user_id, "role": "user", "content": "Why does the falcon fail?"}]
    for number, tool in enumerate(TOOLS):
        call = {"id": f"c{number}", "type": "function", "function": {"name": tool, "arguments": "{}"}}
        said.append({"sender_id": agent, "role": "assistant", "content": f"Step {number}", "tool_calls": [call]})
        said.append({"sender_id": "runner", "role": "tool", "content": "done", "tool_call_id": f"c{number}"})
    said.append({"sender_id": agent, "role": "assistant", "content": "It had one connection; now it has fifty."})
    return [{**message, "timestamp": start + number * 1000} for number, message in enumerate(said)]


def test_a_profile_is_made_and_belongs_to_one(newcomer: Newcomer, settle: Settle) -> None:
    lee, leea = newcomer("lee"), newcomer("leea")
    for number in range(2):
        tell(lee, f"I collect stamps, now {number}.", str(number))
        settle()
    profiles = [one for one in search(lee, "stamps", include_profile=True) if one["memory_type"] == "profile"]
    assert [one["raw"]["user_id"] for one in profiles] == [lee.user_id]
    assert "collect stamps" in profiles[0]["text"]
    assert search(leea, "stamps", include_profile=True) == []


def test_an_export_holds_it_all_and_an_erasure_says_what_stays_behind(newcomer: Newcomer, settle: Settle) -> None:
    moe, moes = newcomer("moe"), newcomer("moes")
    resource_id = moe.upload("pier.txt", NOTES).json()["resource"]["id"]
    tell(moe, "The kettle is broken.")
    tell(moes, "The kettle is mine.")
    settle()
    with zipfile.ZipFile(io.BytesIO(moe.http.get("/users/me/export").content)) as archive:
        rows = b"".join(archive.read(name) for name in archive.namelist() if "episode" in name)
        assert NOTES in [archive.read(name) for name in archive.namelist() if name.endswith("pier.txt")]
    episodes = [msgspec.json.decode(row) for row in rows.splitlines()]
    assert {one["session_id"] for one in episodes} == {f"chat:{chat(moe)}", f"resource:{moe.user_id}:{resource_id}"}
    assert {one["user_id"] for one in episodes} == {moe.user_id}
    erased = moe.http.delete(f"/users/{moe.user_id}").json()
    assert (erased["erased"], erased["upstream"]["erased"]) == (True, False)
    assert "EverOS has no delete" in erased["upstream"]["remaining"]
    assert moe.http.post("/memories/search", json={"query": "kettle"}).status_code == 401
    assert chats(search(moes, "kettle")) == ["talk"]


def test_the_gateway_says_what_it_can_do(newcomer: Newcomer) -> None:
    health = newcomer("ned").http.get("/health").json()
    assert (health["status"], health["upstream"]["name"]) == ("ok", "everos")
    assert isinstance(health["upstream"]["backlog"], int)
    assert {name for name, able in health["capabilities"].items() if able} >= {"keyword", "vector", "hybrid", "agentic"}
