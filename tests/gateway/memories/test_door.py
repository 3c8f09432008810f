"""The search's own way in answers as the route of the same path does, whatever is asked."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memory_gateway.engine.schemas import SearchReply
from memory_gateway.gateway.accounts.schemas import NewUser
from memory_gateway.gateway.memories.door import SearchDoor
from memory_gateway.kit.errors import UpstreamRefused, UpstreamTimeout
from memory_gateway.storage.sqlite import SqliteDatabase
from tests.fakes import items
from tests.fakes.house import House
from tests.fakes.upstream import EVEROS_LIKE, RecordingUpstream

BODY = b'{"query":"tea"}'
JSON = (b"content-type", b"application/json")
Answer = tuple[int, dict[bytes, bytes], Any]


@pytest.fixture
async def house(database: SqliteDatabase, tmp_path: Path) -> AsyncIterator[House]:
    upstream = RecordingUpstream(EVEROS_LIKE)
    found = SearchReply(episodes=[items.episode("e1", user_id="ann", session_id=None)])
    upstream.reply("search", found, found)
    house = House(database, tmp_path, upstream)
    yield house
    await house.close()


@pytest.fixture
async def ann(house: House) -> NewUser:
    return await house.accounts.create("ann")


async def ask(
    house: House,
    headers: list[tuple[bytes, bytes]],
    *pieces: bytes,
    path: str = "/memories/search",
    query_string: bytes = b"",
) -> Answer:
    """One request in these pieces, to the app itself."""
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query_string,
        "root_path": "",
        "headers": [*headers, (b"x-request-id", b"one")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
        "state": {},
    }
    events = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    events[-1]["more_body"] = False
    sent: list[Any] = []

    async def receive() -> Any:
        return events.pop(0) if events else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await house.app(scope, receive, send)  # type: ignore[arg-type]  # dicts as a server makes them
    return sent[0]["status"], dict(sent[0]["headers"]), msgspec.json.decode(b"".join(one["body"] for one in sent[1:]))


def key_of(user: NewUser, *more: tuple[bytes, bytes], length: int = len(BODY)) -> list[tuple[bytes, bytes]]:
    key = {b"x-user-id": user.user_id.encode(), b"x-user-key": user.user_key.encode()}
    return list({**key, **dict([JSON, (b"content-length", b"%d" % length), *more])}.items())


@pytest.fixture
def at_the_door(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The users whom the door has answered itself."""
    answered: list[str] = []
    answer = SearchDoor._answer

    async def noted(self: SearchDoor, scope: Any, receive: Any, send: Any, user_id: str, query: Any) -> None:
        answered.append(user_id)
        await answer(self, scope, receive, send, user_id, query)

    monkeypatch.setattr(SearchDoor, "_answer", noted)
    return answered


async def test_a_plain_search_is_answered_at_the_door_as_by_the_route(
    house: House, ann: NewUser, at_the_door: list[str]
) -> None:
    at_door = await ask(house, key_of(ann), BODY)
    assert at_the_door == ["ann"]
    by_route = await ask(house, key_of(ann), b'{"query":', b'"tea"}')
    assert at_the_door == ["ann"]
    assert at_door == by_route
    assert (at_door[0], [one["id"] for one in at_door[2]["results"]]) == (200, ["e1"])
    assert at_door[1][b"x-request-id"] == b"one"


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ([(b"x-user-key", b"mgw_wrong")], BODY, 401),
        ([(b"x-user-id", b"anna")], BODY, 401),
        ([(b"x-user-id", b"Ann")], BODY, 401),
        ([(b"x-user-id", b"nobody")], b"{", 401),
        ([], b'{"query":"tea","user_id":"anna"}', 403),
        ([], b'{"query":"tea","user_id":"ann"}', 200),
        ([], b"{", 400),
        ([], b"", 422),
        ([], b'{"query":"tea","filters":' + b'{"a":' * 10_000, 400),
        ([], b'{"query":" "}', 422),
        ([], b'{"query":"a\\u0000"}', 422),
        ([], b'{"query":"tea","top_k":0}', 422),
        ([], b'{"query":"tea","unknown":1}', 422),
        ([(b"content-type", b"text/plain")], BODY, 415),
        ([(b"content-type", b"application/json; charset=utf-8")], BODY, 200),
        ([(b"content-length", b"100000000")], BODY, 413),
        ([], BODY + b" " * 80_000, 200),
        ([(b"content-length", b"2")], BODY + b" " * 80_000, 200),
    ],
)
async def test_what_is_not_plain_is_answered_as_in_two_pieces(
    headers: list[tuple[bytes, bytes]], body: bytes, status: int, house: House, ann: NewUser
) -> None:
    """A body in two pieces is the route's to read."""
    await house.accounts.create("anna")
    sent = key_of(ann, *headers, length=len(body))
    in_one, in_two = await ask(house, sent, body), await ask(house, sent, body, b"")
    assert in_one == in_two
    assert in_one[0] == status


async def test_credentials_in_the_body_are_the_routes_affair(
    house: House, ann: NewUser, at_the_door: list[str]
) -> None:
    body = msgspec.json.encode({"query": "tea", "user_id": "ann", "user_key": ann.user_key})
    assert (await ask(house, [JSON, (b"content-length", b"%d" % len(body))], body))[0] == 200
    assert at_the_door == []


async def test_unknown_parameters_are_refused_as_by_the_route(house: House, ann: NewUser) -> None:
    status, _, answer = await ask(house, key_of(ann), BODY, query_string=b"top_k=3")
    assert (status, answer["error"]["details"]) == (422, {"field": "top_k"})


@pytest.mark.parametrize(
    "fault", [UpstreamTimeout("slow"), UpstreamRefused(422, "INVALID_INPUT", "no such operator"), ValueError("a fault")]
)
async def test_a_fault_of_the_search_is_told_as_by_the_route(
    fault: Exception, house: House, ann: NewUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream = RecordingUpstream(EVEROS_LIKE)
    monkeypatch.setattr(house.memories._search, "_upstream", upstream)
    upstream.fail("search", fault, times=2)
    at_door = await ask(house, key_of(ann), BODY)
    by_route = await ask(house, key_of(ann), BODY, b"")
    assert at_door == by_route
    assert at_door[0] == getattr(fault, "status", 500)
    assert "a fault" not in str(at_door)


async def test_a_rotated_key_is_dead_for_the_next_search(house: House, ann: NewUser) -> None:
    assert (await ask(house, key_of(ann), BODY))[0] == 200
    await house.accounts.rotate("ann")
    assert (await ask(house, key_of(ann), BODY))[0] == 401


async def test_searches_at_the_door_are_counted_with_the_routes(house: House, ann: NewUser) -> None:
    await ask(house, key_of(ann), BODY)
    await ask(house, key_of(ann), BODY, b"")
    page = (await house.client.get("/metrics")).text
    assert 'http_requests_total{method="POST",route="/memories/search",status="200"} 2.0' in page
