"""An override's words: how they match a query, and what a search over HTTP makes of them."""

import pytest
from msgspec import UNSET

from memory_gateway.engine.schemas import MemoryKey, Method, SearchReply
from memory_gateway.gateway.memories.overrides import floor, query_words, score, share
from memory_gateway.gateway.memories.schemas import SearchMemories
from memory_gateway.gateway.memories.scopes import question
from tests.fakes import items
from tests.fakes.house import House, Json, User, ids, texts
from tests.fakes.upstream import RecordingUpstream
from tests.gateway.memories.conftest import METHODS, error, show, told


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("coffee", "I drink tea", 0.0),
        ("tea", "I drink tea", 1.0),
        ("TEAS", "I drink tea", 1.0),
        ("green tea", "I drink tea", 0.5),
        ("the tea", "the coffee", 0.0),
        ("who are you", "you know who", 2 / 3),
        ("咖啡", "我喝咖啡", 1.0),
        ("咖啡", "我喝茶", 0.0),
        ("茶", "我喝绿茶", 1.0),
        ("coff", "my coffee", 1.0),
        ("*", "five * stars", 1.0),
        ("*", "five stars", 0.0),
        ("🎉", "party 🎉", 1.0),
    ],
)
def test_the_share_of_the_query_that_a_text_holds(query: str, text: str, expected: float) -> None:
    assert share(query_words(query), text) == pytest.approx(expected)


def test_an_overrides_score_is_its_share_of_the_best_the_upstream_gave() -> None:
    assert score(1.0, 7.4) == 7.4
    assert score(0.5, 0.8) == 0.4
    assert score(0.5, None) == 0.5
    assert score(0.5, 0.0) == 0.5


def test_only_methods_that_score_by_meaning_have_a_floor() -> None:
    methods: tuple[Method, ...] = ("keyword", "vector", "hybrid", "agentic")
    found = {
        method: floor(question("ann", SearchMemories(query="x", method=method, radius=0.4, min_score=0.7)))
        for method in methods
    }
    assert found == {"keyword": 0.0, "vector": 0.4, "hybrid": 0.7, "agentic": 0.0}
    assert question("ann", SearchMemories(query="x")).radius is UNSET


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
        (8, [("mine", 8.0), ("top", 8.0), ("half", 4.0), ("low", 3.0)]),
        (3, [("mine", 8.0), ("top", 8.0), ("half", 4.0)]),
    ]:
        everos.reply("search", SearchReply(episodes=hits))
        results = await ann.search("falcon Lisbon", top_k=top_k, method="keyword")
        assert [(result["id"], result["score"]) for result in results] == expected
    everos.reply("search", *[SearchReply()] * 3)
    assert ids(await ann.search("falcon Lisbon", min_score=0.6)) == ["mine"]
    assert ids(await ann.search("falcon Lisbon", method="vector", radius=0.6)) == ["mine"]
    assert ids(await ann.search("falcon Lisbon", method="keyword", radius=0.6)) == ["mine", "half"]


async def test_a_corrected_memory_is_scored_by_its_new_words_where_the_upstream_knows_only_the_old(
    everos: RecordingUpstream, ann: User
) -> None:
    await show(everos, ann, "mine")
    await ann.override("mine", "The launch is on 25 September.")
    hits = [items.episode("balloons", session_id=None, score=0.13), items.episode("mine", session_id=None, score=0.01)]
    everos.reply("search", SearchReply(episodes=hits))
    results = await ann.search("The launch is on 25 September.", top_k=1)
    assert [(result["id"], result["score"]) for result in results] == [("mine", 0.13)]


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
    assert error(await ann.override(tea, "black tea"))[:2] == (409, "conflict")
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


async def test_what_is_said_after_a_correction_is_a_memory_of_its_own(everos: RecordingUpstream, ann: User) -> None:
    await show(everos, ann, "mine")
    await ann.override("mine", "The dentist is on Tuesday.")
    assert len(everos.requests("seal")) == 1
