from urllib.parse import quote

import pytest

from memory_gateway.gateway.memories.paths import _routed, memory_id_of
from memory_gateway.kit.errors import InvalidInput, NotFound
from tests.fakes.house import House, User
from tests.fakes.upstream import RecordingUpstream
from tests.gateway.memories.conftest import show

ODD_IDS = [
    "ann_ep_20261130_00000001",
    "planner_read/write",
    "m_chat:1_1780000000000_000",
    "search",
    "add",
    "a/override",
    "a/history",
    "a%2Fb",
    "100%",
    "周工 ✓",
    "a?b#c",
    "a+b",
]


async def test_an_id_reaches_its_memory_whatever_it_holds(house: House, everos: RecordingUpstream, ann: User) -> None:
    await show(everos, ann, *ODD_IDS)
    for memory_id in ODD_IDS:
        await _edit_in_every_way(house, ann, memory_id)


async def _edit_in_every_way(house: House, ann: User, memory_id: str) -> None:
    path = f"/memories/{quote(memory_id, safe='')}"
    for method, action in (("DELETE", ""), ("POST", "/restore"), ("PUT", ""), ("DELETE", "/override")):
        body = {"text": "mine"} if method == "PUT" else None
        response = await house.client.request(method, path + action, headers=ann.headers, json=body)
        assert (response.status_code, response.json().get("memory_id")) == (200, memory_id), (method, action)
    history = await house.client.get(f"{path}/history", headers=ann.headers)
    actions = [entry["action"] for entry in history.json()["history"]]
    assert sorted(actions) == ["override", "override_removed", "restore", "tombstone"]


async def test_slashes_of_an_id_may_also_stand_unencoded(house: House, everos: RecordingUpstream, ann: User) -> None:
    await show(everos, ann, "planner_read/write")
    response = await house.client.delete("/memories/planner_read/write", headers=ann.headers)
    assert response.json()["memory_id"] == "planner_read/write"
    response = await house.client.post("/memories/planner_read/write/restore", headers=ann.headers)
    assert response.json()["deleted_at"] is None


async def test_paths_that_are_none_stay_so(house: House, ann: User) -> None:
    for method, path, status in [
        ("GET", "/memories/x", 405),
        ("POST", "/memories/x", 405),
        ("GET", "/memories", 404),
        ("DELETE", "/memories/", 404),
        ("POST", "/memories/x/forget", 404),
        ("GET", "/memories/search", 405),
    ]:
        response = await house.client.request(method, path, headers=ann.headers)
        assert response.status_code == status, (method, path)


async def test_ids_that_cannot_be_are_refused(house: House, ann: User) -> None:
    for segment, status in [("a%00b", 422), ("%FF", 422), ("%ED%A0%80", 422), ("x" * 513, 404)]:
        response = await house.client.delete(f"/memories/{segment}", headers=ann.headers)
        assert response.status_code == status, segment
        if status == 422:
            assert response.json()["error"]["details"] == {"field": "memory_id"}


def test_the_query_string_is_no_part_of_an_id() -> None:
    """Some servers leave it in the raw path."""
    assert _routed("DELETE", b"/memories/ab/c?app_id=x/override", "") == "/memories/%61b%2Fc"
    assert _routed("GET", b"/memories/ab/history?app_id=x", "") == "/memories/%61b/history"


def test_a_segment_is_decoded_once() -> None:
    assert memory_id_of("a%252Fb") == "a%2Fb"
    with pytest.raises(InvalidInput):
        memory_id_of("%C3")
    with pytest.raises(NotFound):
        memory_id_of("x" * 513)
