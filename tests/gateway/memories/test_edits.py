"""Tombstones, overrides and their history, over HTTP."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from memory_gateway.engine.schemas import MemoryKey, SearchReply
from memory_gateway.kit.clock import rfc3339
from memory_gateway.kit.errors import UpstreamUnreachable
from tests.fakes import items
from tests.fakes.house import House, User, ids, texts
from tests.fakes.upstream import RecordingUpstream
from tests.gateway.memories.conftest import METHODS, SCOPES, error, history, show, told

# History


async def test_an_edit_is_of_the_time_when_it_was_done_and_not_of_when_it_was_asked_for(
    house: House, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that wait for each other are then in the history in the order in which they were done."""
    [tea] = await told(ann, "I like green tea")
    write = house.database.write

    async def write_later(*work: Any, **options: Any) -> Any:
        house.clock.forward(seconds=60)
        return await write(*work, **options)

    monkeypatch.setattr(house.database, "write", write_later)
    for method, action, body in (("PUT", "", {"text": "mint tea"}), ("DELETE", "/override", None)):
        asked_at = rfc3339(house.clock())
        assert (await ann.edit(method, tea, action, body=body)).status_code == 200
        assert (await history(ann, tea))[-1]["at"] > asked_at


# Tombstones


async def test_a_deleted_memory_shows_in_no_scope_and_method_until_it_is_restored(ann: User) -> None:
    tea, _ = await told(ann, "I like green tea", "I like black coffee")
    deleted = await ann.delete(tea)
    assert deleted.status_code == 200
    assert deleted.json() == {
        "memory_id": tea,
        "memory_type": "episode",
        "app_id": "default",
        "project_id": "default",
        "deleted_at": deleted.json()["deleted_at"],
        "override": None,
    }
    for method in METHODS:
        for scope in SCOPES:
            assert await ann.search("tea", scope=scope, conversation_id="1", method=method) == []
    restored = await ann.edit("POST", tea, "/restore")
    assert (restored.status_code, restored.json()["deleted_at"]) == (200, None)
    assert ids(await ann.search("tea")) == [tea]


async def test_tombstones_do_not_eat_the_answer(any_house: House) -> None:
    """F8: five memories match, the best three are deleted, two are asked for: the two that live come."""
    ann = await any_house.user("ann")
    uploads = [await ann.upload(f"falcon{number}.txt", b"falcon %d" % number) for number in range(5)]
    assert [response.status_code for response in uploads] == [201] * 5
    await ann.add("falcon " * 5)
    await ann.flush()
    everything = ids(await ann.search("falcon", top_k=-1))
    assert len(everything) == 6
    resources = ids(await ann.search("falcon", scope="resources", top_k=-1))
    for memory_id in resources[:3]:
        assert (await ann.delete(memory_id)).status_code == 200
    for method in METHODS:
        assert ids(await ann.search("falcon", scope="resources", top_k=2, method=method)) == resources[3:]
        found = await ann.search("falcon", scope=SCOPES, conversation_id="1", top_k=3, method=method)
        assert sorted(ids(found)) == sorted(set(everything) - set(resources[:3]))


async def test_the_wider_question_is_asked_once_and_only_where_it_helps(everos: RecordingUpstream, ann: User) -> None:
    first, second, third = await told(ann, "falcon one", "falcon two", "falcon three")
    assert len(everos.requests("search")) == 1
    await ann.search("falcon", top_k=2)
    assert len(everos.requests("search")) == 2
    await ann.delete(first)
    assert ids(await ann.search("falcon", top_k=2)) == [second, third]
    assert [body["top_k"] for body in everos.sent("search")[2:]] == [2, 100]
    assert {**everos.sent("search")[2], "top_k": 100} == everos.sent("search")[3]
    await ann.search("falcon", top_k=-1)
    await ann.search("falcon", top_k=100)
    assert len(everos.requests("search")) == 6


async def test_the_embedded_upstream_is_told_and_asked_once(embedded_house: House, embedded: RecordingUpstream) -> None:
    ann = await embedded_house.user("ann")
    first, second = await told(ann, "falcon one", "falcon two")
    await ann.delete(first)
    assert ids(await ann.search("falcon", top_k=1)) == [second]
    assert embedded.callers("search")[-1].hidden == (MemoryKey("episode", first),)
    assert len(embedded.requests("search")) == 2


async def test_a_growing_memory_is_closed_before_it_is_hidden(
    embedded_house: House, embedded: RecordingUpstream
) -> None:
    ann = await embedded_house.user("ann")
    await ann.add("the party is a surprise")
    (party,) = ids(await ann.search("party"))
    await ann.delete(party)
    assert embedded.requests("seal") == [("default", "default", MemoryKey("episode", party))]
    await ann.add("the party begins at eight")
    assert texts(await ann.search("party")) == ["ann: the party begins at eight"]


async def test_a_delete_that_cannot_close_its_memory_changes_nothing(everos: RecordingUpstream, ann: User) -> None:
    (tea,) = await told(ann, "green tea")
    everos.fail("seal", UpstreamUnreachable("gone"))
    assert error(await ann.delete(tea))[:2] == (502, "upstream_unreachable")
    assert ids(await ann.search("tea")) == [tea]
    assert await history(ann, tea) == []


async def test_where_ids_change_a_deleted_memory_stays_hidden_by_what_it_says(
    everos: RecordingUpstream, ann: User
) -> None:
    await ann.add("hello")
    raw = items.episode("ann_ep_1", text="Ann likes Green  tea")
    everos.reply("search", SearchReply(episodes=[raw]))
    await ann.search("tea")
    await ann.delete("ann_ep_1")
    again = {**raw, "id": "ann_ep_7", "episode": "ann likes green tea"}
    later = {**raw, "id": "ann_ep_8", "timestamp": "2026-05-30T00:00:00Z"}
    elsewhere = {**raw, "id": "ann_ep_9", "session_id": None}
    everos.reply("search", SearchReply(episodes=[again, later, elsewhere]))
    assert ids(await ann.search("tea", top_k=-1)) == ["ann_ep_8", "ann_ep_9"]
    await ann.edit("POST", "ann_ep_1", "/restore")
    everos.reply("search", SearchReply(episodes=[again]))
    assert ids(await ann.search("tea")) == ["ann_ep_7"]


async def test_where_ids_stay_only_the_id_counts(embedded_house: House, embedded: RecordingUpstream) -> None:
    ann = await embedded_house.user("ann")
    await show(embedded, ann, "e1")
    await ann.delete("e1")
    twin = items.episode("e2", session_id=None)
    embedded.reply("search", SearchReply(episodes=[twin]))
    assert ids(await ann.search("hello")) == ["e2"]


# History


async def test_history_tells_every_edit_with_its_time(house: House, ann: User) -> None:
    (tea,) = await told(ann, "green tea")
    edits: list[Callable[[], Awaitable[httpx.Response]]] = [
        lambda: ann.override(tea, "white tea"),
        lambda: ann.override(tea, "white tea"),
        lambda: ann.edit("PUT", tea, body={"text": "black tea", "reason": "stronger"}),
        lambda: ann.delete(tea),
        lambda: ann.delete(tea),
        lambda: ann.edit("POST", tea, "/restore"),
        lambda: ann.edit("POST", tea, "/restore"),
        lambda: ann.edit("DELETE", tea, "/override"),
        lambda: ann.edit("DELETE", tea, "/override"),
        lambda: ann.delete(tea),
    ]
    for edit in edits:
        house.clock.forward(seconds=1)
        assert (await edit()).status_code == 200
    entries = await history(ann, tea)
    assert [(entry["action"], entry["text"], entry["reason"]) for entry in entries] == [
        ("override", "white tea", None),
        ("override", "black tea", "stronger"),
        ("tombstone", None, None),
        ("restore", None, None),
        ("override_removed", None, None),
        ("tombstone", None, None),
    ]
    assert [entry["at"] for entry in entries] == sorted({entry["at"] for entry in entries})
    actions = await house.database.fetch("SELECT action FROM audit_log WHERE object_type = 'memory' ORDER BY at")
    assert [action for (action,) in actions] == [
        "override",
        "override",
        "delete",
        "restore",
        "remove_override",
        "delete",
    ]


# Who may edit what


async def test_a_memory_never_shown_to_the_user_is_a_404_whether_it_exists_or_not(ann: User, anna: User) -> None:
    (tea,) = await told(ann, "green tea")
    await ann.override(tea, "white tea")
    bodies = set()
    for memory_id in (tea, "no such memory", "ann", "%", tea[:-1] + "_"):
        for method, action in [
            ("DELETE", ""),
            ("POST", "/restore"),
            ("PUT", ""),
            ("DELETE", "/override"),
            ("GET", "/history"),
        ]:
            body = {"text": "mine"} if method == "PUT" else None
            response = await anna.edit(method, memory_id, action, body=body)
            bodies.add((response.status_code, str(response.json()["error"])))
    assert bodies == {(404, "{'code': 'not_found', 'message': 'not found'}")}
    assert texts(await ann.search("white tea")) == ["white tea"]


async def test_edits_are_the_users_own_even_of_the_same_id(everos: RecordingUpstream, ann: User, anna: User) -> None:
    for user in (ann, anna):
        await show(everos, user, "shared_id")
    await ann.delete("shared_id")
    await anna.override("shared_id", "anna's words")
    assert await history(ann, "shared_id") != await history(anna, "shared_id")
    assert await ann.search("anna's words") == []
    assert texts(await anna.search("anna's words")) == ["anna's words"]


async def test_edits_count_within_app_project_and_type(ann: User) -> None:
    (here,) = await told(ann, "green tea")
    (there,) = await told(ann, "green tea", app_id="shop")
    assert here == there
    await ann.delete(here, app_id="shop")
    assert ids(await ann.search("tea")) == [here]
    assert await ann.search("tea", app_id="shop") == []
    assert error(await ann.delete(here, project_id="eu"))[:2] == (404, "not_found")
    assert error(await ann.delete(here, memory_type="agent_case"))[:2] == (404, "not_found")
    assert (await ann.delete(here, memory_type="fact")).status_code == 422
    assert (await ann.delete(here, app_id="a/b")).json()["error"]["details"] == {"field": "app_id"}
    assert (await ann.delete(here, appid="shop")).status_code == 422


async def test_an_override_never_moves_to_another_user(house: House, everos: RecordingUpstream) -> None:
    """F2: mira's override with teo's id in the body."""
    mira, teo = await house.user("mira"), await house.user("teo")
    for user in (mira, teo):
        await show(everos, user, "e1")
    body = {"text": "x", "user_id": "teo"}
    assert error(await mira.edit("PUT", "e1", body=body))[:2] == (403, "forbidden")
    assert await history(mira, "e1") == await history(teo, "e1") == []
    own_key = {**body, "user_key": mira.credentials["user_key"]}
    assert error(await house.client.put("/memories/e1", json=own_key))[:2] == (401, "unauthorized")
    in_body = {**mira.credentials, "text": "mine"}
    assert (await house.client.put("/memories/e1", json=in_body)).status_code == 200
    assert (await house.client.delete("/memories/e1")).status_code == 401


async def test_what_was_shown_may_be_edited_after_a_restart(house: House, everos: RecordingUpstream, ann: User) -> None:
    await show(everos, ann, "e1")
    await house.memories.close()
    again = House(house.database, house.data_dir, everos)
    user = User(again.client, "ann", ann.credentials["user_key"], again.clock)
    assert (await user.override("e1", "mine")).status_code == 200
    await again.close()


async def test_a_memory_edited_long_ago_stays_known(house: House, everos: RecordingUpstream, ann: User) -> None:
    await show(everos, ann, "e1")
    await ann.delete("e1")
    await asyncio.sleep(0.2)
    await house.database.write(lambda transaction: transaction.execute("DELETE FROM shown_memories"))
    assert (await ann.delete("e1")).status_code == 200
    assert (await ann.edit("POST", "e1", "/restore")).status_code == 200
    assert [entry["action"] for entry in await history(ann, "e1")] == ["tombstone", "restore"]
