"""Tombstones, overrides and their history, over HTTP."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx

from memory_gateway.engine.schemas import MemoryKey, SearchReply
from memory_gateway.kit.errors import UpstreamUnreachable
from tests.fakes import items
from tests.fakes.house import House, Json, User, ids, texts
from tests.fakes.upstream import RecordingUpstream
from tests.gateway.memories.conftest import show

SCOPES = ["current_chat", "resources", "all_user_memory"]
METHODS = ["keyword", "vector", "hybrid", "agentic"]


def error(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


async def told(user: User, *stories: str, chat: str = "1", **body: Any) -> list[str]:
    """One closed episode for each story; their ids, as a search showed them."""
    for number, story in enumerate(stories):
        await user.add(story, chat=f"{chat}.{number}" if number else chat, **body)
        await user.flush(f"{chat}.{number}" if number else chat, **body)
    shown = await user.search(" ".join(stories), top_k=-1, **body)
    return [result["id"] for story in stories for result in shown if story in result["text"]]


async def history(user: User, memory_id: str) -> list[Json]:
    response = await user.edit("GET", memory_id, "/history")
    assert response.status_code == 200, response.text
    entries: list[Json] = response.json()["history"]
    return entries


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
    assert error(await ann.delete(tea)) == (502, "upstream_unreachable")
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


# Overrides


async def test_the_users_text_is_shown_and_the_raw_item_stays(ann: User) -> None:
    (tea,) = await told(ann, "I like green tea")
    raw = (await ann.search("tea"))[0]["raw"]
    response = await ann.edit("PUT", tea, body={"text": "I like white tea", "reason": "better now"})
    assert response.status_code == 200
    assert response.json()["override"] == {
        "text": "I like white tea",
        "reason": "better now",
        "version": 1,
        "created_at": response.json()["override"]["created_at"],
    }
    (shown,) = await ann.search("tea")
    assert (shown["id"], shown["text"], shown["overridden"], shown["raw"]) == (tea, "I like white tea", True, raw)
    removed = await ann.edit("DELETE", tea, "/override")
    assert (removed.status_code, removed.json()["override"]) == (200, None)
    assert texts(await ann.search("tea")) == ["ann: I like green tea"]


async def test_the_new_words_are_found_and_the_replaced_ones_are_not(any_house: House) -> None:
    ann = await any_house.user("ann")
    tea, other = await told(ann, "I drink green tea", "a green meadow")
    await ann.override(tea, "I drink 乌龙")
    for method in METHODS:
        assert await ann.search("tea", method=method) == []
        assert ids(await ann.search("green", method=method, top_k=1)) == [other]
        for scope in ("all_user_memory", "current_chat"):
            (found,) = await ann.search("乌龙", method=method, scope=scope, conversation_id="1")
            assert (found["id"], found["text"], found["source_scope"]) == (tea, "I drink 乌龙", scope)
            assert (found["overridden"], found["session_id"], found["raw"]["id"]) == (True, "chat:1", tea)
    assert await ann.search("乌龙", scope="current_chat", conversation_id="2") == []
    assert await ann.search("乌龙", scope="resources") == []


async def test_an_override_takes_its_place_by_how_much_of_the_query_it_holds(
    everos: RecordingUpstream, ann: User
) -> None:
    await show(everos, ann, "mine", "half")
    await ann.override("mine", "the falcon moves to Lisbon")
    await ann.override("half", "a falcon in the sky")
    hits = [items.episode("top", session_id=None, score=8.0), items.episode("low", session_id=None, score=3.0)]
    for top_k, expected in [
        (8, [("top", 8.0), ("mine", 8.0), ("half", 4.0), ("low", 3.0)]),
        (3, [("top", 8.0), ("mine", 8.0), ("half", 4.0)]),
    ]:
        everos.reply("search", SearchReply(episodes=hits))
        results = await ann.search("falcon Lisbon", top_k=top_k, method="keyword")
        assert [(result["id"], result["score"]) for result in results] == expected
    everos.reply("search", *[SearchReply()] * 3)
    assert ids(await ann.search("falcon Lisbon", min_score=0.6)) == ["mine"]
    assert ids(await ann.search("falcon Lisbon", method="vector", radius=0.6)) == ["mine"]
    assert ids(await ann.search("falcon Lisbon", method="keyword", radius=0.6)) == ["mine", "half"]


async def test_with_custom_filters_only_what_the_upstream_confirms_is_added(
    house: House, everos: RecordingUpstream, ann: User
) -> None:
    (tea,) = await told(ann, "I drink green tea")
    await ann.override(tea, "I drink cocoa")
    within = {"timestamp": {"gte": 1}}
    assert ids(await ann.search("cocoa", filters={})) == [tea]
    assert await ann.search("cocoa", filters=within) == []
    everos.reply("within", frozenset({tea}), frozenset())
    assert ids(await ann.search("cocoa", filters=within)) == [tea]
    assert await ann.search("cocoa", filters=within) == []
    assert everos.requests("within")[0].filters == within


async def test_the_embedded_upstream_says_which_overrides_a_filter_keeps(
    embedded_house: House, embedded: RecordingUpstream
) -> None:
    ann = await embedded_house.user("ann")
    (tea,) = await told(ann, "I drink green tea")
    await ann.override(tea, "I drink cocoa")
    assert ids(await ann.search("cocoa", filters={"sender_id": "ann"})) == [tea]
    assert await ann.search("cocoa", filters={"sender_id": "bot"}) == []
    scoped = {"scope": "current_chat", "filters": {"sender_id": "ann"}}
    assert ids(await ann.search("cocoa", conversation_id="1", **scoped)) == [tea]
    assert await ann.search("cocoa", conversation_id="2", **scoped) == []
    assert embedded.callers("search")[-1].left_out == frozenset()
    await ann.search("tea")
    assert embedded.callers("search")[-1].left_out == {MemoryKey("episode", tea)}


async def test_an_override_of_a_deleted_resource_stays_out(house: House, ann: User) -> None:
    resource = (await ann.upload("notes.txt", b"The heron.")).json()["resource"]
    (memory,) = ids(await ann.search("notes"))
    await ann.override(memory, "about the heron")
    assert ids(await ann.search("heron", scope="resources")) == [memory]
    await house.client.delete(f"/resources/{resource['id']}", headers=ann.headers)
    assert await ann.search("heron", scope=["resources", "all_user_memory"]) == []


async def test_overrides_belong_to_the_owner_that_is_searched(everos: RecordingUpstream, ann: User) -> None:
    await ann.add("please fix the 502")
    cases = [items.agent_case("c1", agent_id="planner")]
    everos.reply("search", SearchReply(agent_cases=cases))
    await ann.search("502", agent_id="planner")
    assert (await ann.override("c1", "restart the heron", memory_type="agent_case")).status_code == 200
    assert ids(await ann.search("heron", agent_id="planner")) == ["c1"]
    assert await ann.search("heron", agent_id="other") == []
    assert await ann.search("heron") == []


async def test_what_comes_along_with_every_search_needs_no_matching_words(everos: RecordingUpstream, ann: User) -> None:
    everos.memory.plant("profile", items.profile("ann"))
    assert ids(await ann.search("anything")) == ["ann"]
    await ann.override("ann", "Prefers silence.", memory_type="profile")
    assert texts(await ann.search("tea")) == ["Prefers silence."]
    assert await ann.search("silence", include_profile=False) == []


async def test_a_deleted_memory_is_restored_before_it_is_overridden(ann: User) -> None:
    (tea,) = await told(ann, "green tea")
    await ann.override(tea, "white tea")
    await ann.delete(tea)
    assert error(await ann.override(tea, "black tea")) == (409, "conflict")
    assert await ann.search("white tea") == []
    await ann.edit("POST", tea, "/restore")
    assert texts(await ann.search("white tea")) == ["white tea"]


FAULTY_OVERRIDES: list[tuple[Json, str]] = [
    ({"text": ""}, "text"),
    ({"text": " \n"}, "text"),
    ({"text": None}, "text"),
    ({}, "text"),
    ({"text": "x" * 20_001}, "text"),
    ({"text": "a\x00b"}, "text"),
    ({"text": "a", "reason": "x" * 1_001}, "reason"),
    ({"text": "a", "memory_id": "b"}, "memory_id"),
]


async def test_a_faulty_override_is_a_422_that_names_the_field(ann: User) -> None:
    (tea,) = await told(ann, "green tea")
    for body, field in FAULTY_OVERRIDES:
        response = await ann.edit("PUT", tea, body=body)
        assert (response.status_code, response.json()["error"]["details"]) == (422, {"field": field}), body
    assert texts(await ann.search("tea")) == ["ann: green tea"]


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
    assert error(await ann.delete(here, project_id="eu")) == (404, "not_found")
    assert error(await ann.delete(here, memory_type="agent_case")) == (404, "not_found")
    assert (await ann.delete(here, memory_type="fact")).status_code == 422
    assert (await ann.delete(here, app_id="a/b")).json()["error"]["details"] == {"field": "app_id"}
    assert (await ann.delete(here, appid="shop")).status_code == 422


async def test_an_override_never_moves_to_another_user(house: House, everos: RecordingUpstream) -> None:
    """F2: mira's override with teo's id in the body."""
    mira, teo = await house.user("mira"), await house.user("teo")
    for user in (mira, teo):
        await show(everos, user, "e1")
    body = {"text": "x", "user_id": "teo"}
    assert error(await mira.edit("PUT", "e1", body=body)) == (403, "forbidden")
    assert await history(mira, "e1") == await history(teo, "e1") == []
    own_key = {**body, "user_key": mira.credentials["user_key"]}
    assert error(await house.client.put("/memories/e1", json=own_key)) == (401, "unauthorized")
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
