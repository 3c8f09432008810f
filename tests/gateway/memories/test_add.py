"""``POST /memories/add`` and ``/memories/flush``, over HTTP, with an upstream that notes what it is sent."""

import asyncio
import base64
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memory_gateway.engine.schemas import AddReply, Caller, FlushReply
from memory_gateway.gateway.memories import service
from memory_gateway.gateway.memories.idempotency import keyed_request
from memory_gateway.kit.errors import StorageUnavailable, UpstreamRefused, UpstreamTimeout, UpstreamUnreachable
from memory_gateway.storage.port import Database
from memory_gateway.storage.sqlite import SqliteDatabase
from tests.fakes.house import House, Json, User, ids, texts
from tests.fakes.upstream import RecordingUpstream
from tests.gateway.memories.conftest import error

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\nnot really").decode()


def stored_files(house: House) -> list[Path]:
    return [path for path in house.storage_root.rglob("*") if path.is_file()]


async def count(database: Database, table: str) -> int:
    ((number,),) = await database.fetch(f"SELECT COUNT(*) FROM {table}")
    return int(number)


async def test_the_upstream_gets_the_messages_as_they_came_and_its_answer_goes_back(
    house: House, everos: RecordingUpstream, ann: User
) -> None:
    messages = (
        b'[{"timestamp": 1780000000000,"role":"user", "content":[{"type":"text","text":"\\u56fe \xe5\x9b\xbe"}],'
        b' "sender_id":"ann"},\n {"sender_id":"bot","role":"assistant","timestamp":1780000000001,"content":"ok"}]'
    )
    body = b'{"session_id": "s", "app_id": "shop", "messages": ' + messages + b', "project_id": null}'
    everos.reply("add", AddReply(2, "extracted"))
    response = await house.client.post(
        "/memories/add", content=body, headers={**ann.headers, "Content-Type": "application/json"}
    )
    assert response.status_code == 200
    assert response.json() == {
        "request_id": response.headers["x-request-id"],
        "data": {"message_count": 2, "status": "extracted"},
    }
    (request,) = everos.requests("add")
    assert bytes(request.wire_messages) == messages
    assert (request.session_id, request.app_id, request.project_id) == ("s", "shop", "default")
    assert everos.callers("add") == [Caller(user_id="ann")]


async def test_what_the_upstream_works_on_later_is_a_202(everos: RecordingUpstream, ann: User) -> None:
    everos.reply("add", AddReply(1, "queued"))
    everos.reply("flush", FlushReply("queued"))
    added, flushed = await ann.add("hello"), await ann.flush()
    assert (added.status_code, added.json()["data"]["status"]) == (202, "queued")
    assert (flushed.status_code, flushed.json()["data"]["status"]) == (202, "queued")


async def test_a_conversation_id_is_short_for_its_session(everos: RecordingUpstream, ann: User) -> None:
    assert (await ann.add("hello", chat="周 1")).status_code == 200
    assert [body["session_id"] for body in everos.sent("add")] == ["chat:周 1"]


FAULTY_BODIES: list[tuple[Json, str]] = [
    ({"session_id": "s"}, "session_id"),
    ({"conversation_id": None}, "session_id"),
    ({"conversation_id": "a\nb"}, "conversation_id"),
    ({"conversation_id": None, "session_id": "resource:ann:r1"}, "session_id"),
    ({"app_id": "../b"}, "app_id"),
    ({"project_id": ""}, "project_id"),
    ({"app_id": 7}, "app_id"),
    ({"messages": []}, "messages"),
    ({"messages": None}, "messages"),
    ({"messages": "hi"}, "messages"),
    ({"defer_extraction": True}, "defer_extraction"),
    ({"session": "s"}, "session"),
]


async def test_a_faulty_body_is_a_422_that_names_the_field(everos: RecordingUpstream, ann: User) -> None:
    for change, field in FAULTY_BODIES:
        response = await ann.post("/memories/add", {"conversation_id": "1", "messages": [ann.says("hi")], **change})
        assert error(response) == (422, "invalid_input", field), change
    assert everos.calls == []


FAULTY_MESSAGES: list[tuple[Json, str]] = [
    ({"timestamp": 0}, "messages.1.timestamp"),
    ({"timestamp": 17_000_000_000_000_000}, "messages.1.timestamp"),
    ({"timestamp": "2026-05-28"}, "messages.1.timestamp"),
    ({"timestamp": True}, "messages.1.timestamp"),
    ({"role": "system"}, "messages.1.role"),
    ({"role": "tool"}, "messages.1.tool_call_id"),
    ({"sender_id": "teo"}, "messages.1.sender_id"),
    ({"sender_id": "Ann"}, "messages.1.sender_id"),
    ({"sender_id": "user:1"}, "messages.1.sender_id"),
    ({"content": None}, "messages.1.content"),
    ({"content": "x" * 200_001}, "messages.1.content"),
    ({"content": [{"type": "video"}]}, "messages.1.content.0.type"),
    ({"content": [{"type": "text", "txt": "a"}]}, "messages.1.content.0.txt"),
    ({"content": [{"type": "image", "base64": "***"}]}, "messages.1.content.0.base64"),
    ({"message_id": "m1"}, "messages.1.message_id"),
]


async def test_a_faulty_message_is_a_422_that_names_its_place(
    house: House, everos: RecordingUpstream, ann: User
) -> None:
    for change, field in FAULTY_MESSAGES:
        response = await ann.add("fine", {**ann.says("hi"), **change})
        assert error(response) == (422, "invalid_input", field), change
    assert everos.calls == []
    assert stored_files(house) == []
    assert (await (await house.user("anna")).add("mine now")).status_code == 200


@pytest.mark.parametrize("text", ["a\x00b", "\ud800"])
async def test_nul_and_lone_surrogates_are_refused(
    house: House, everos: RecordingUpstream, ann: User, text: str
) -> None:
    body = msgspec.json.encode({"conversation_id": "1", "messages": [ann.says("TEXT")]})
    escaped = body.replace(b"TEXT", "".join(f"\\u{ord(character):04x}" for character in text).encode())
    headers = {**ann.headers, "Content-Type": "application/json"}
    response = await house.client.post("/memories/add", content=escaped, headers=headers)
    assert error(response) == (422, "invalid_input", "messages.0.content")
    assert everos.calls == []


async def test_the_body_never_decides_who_is_calling(house: House, everos: RecordingUpstream) -> None:
    """F2: mira with her own key cannot speak for teo."""
    mira = await house.user("mira")
    await house.user("teo")
    message = {**mira.says("hi"), "sender_id": "teo"}
    body: Json = {"conversation_id": "1", "messages": [message], "user_id": "teo"}
    assert error(await mira.post("/memories/add", body))[:2] == (403, "forbidden")
    without_headers = await house.client.post("/memories/add", json={**body, "user_key": mira.credentials["user_key"]})
    assert error(without_headers)[:2] == (401, "unauthorized")
    assert everos.calls == []
    assert await count(house.database, "session_owners") == 0


async def test_credentials_may_stand_in_the_body_and_do_not_reach_the_upstream(
    house: House, everos: RecordingUpstream, ann: User
) -> None:
    body = {"conversation_id": "1", "messages": [ann.says("hi")], **ann.credentials}
    assert (await house.client.post("/memories/add", json=body)).status_code == 200
    assert ann.credentials["user_key"] not in str(everos.sent("add"))


async def test_two_users_who_both_call_their_chat_1_never_meet(
    house: House, everos: RecordingUpstream, ann: User, anna: User
) -> None:
    assert (await ann.add("my pin is 4471")).status_code == 200
    refused = await anna.add("my pin is 4477")
    assert error(refused)[:2] == (403, "forbidden")
    assert "ann" not in refused.json()["error"]["message"].replace("another", "")
    assert len(everos.requests("add")) == 1
    for scope in ("current_chat", "all_user_memory", ["current_chat", "resources", "all_user_memory"]):
        assert await anna.search("pin", scope=scope, conversation_id="1") == []
    assert texts(await ann.search("pin", scope="current_chat", conversation_id="1")) == ["my pin is 4471"]
    await ann.flush()
    assert texts(await ann.search("pin", scope="current_chat", conversation_id="1")) == ["ann: my pin is 4471"]
    assert await anna.search("pin", scope="current_chat", conversation_id="1") == []


async def test_the_same_chat_name_in_another_project_is_another_session(ann: User, anna: User) -> None:
    assert (await ann.add("hello")).status_code == 200
    assert (await anna.add("hello", project_id="eu")).status_code == 200
    assert (await anna.add("hello", app_id="shop")).status_code == 200
    assert (await ann.add("hello", app_id="shop")).status_code == 403


@pytest.mark.parametrize(
    ("failure", "held"),
    [
        (UpstreamRefused(422, "INVALID_INPUT", "no"), False),
        (UpstreamRefused(500, "INTERNAL_ERROR", "the upstream failed"), True),
        (StorageUnavailable("disk full after the first batch"), True),
        (UpstreamRefused(415, "UNSUPPORTED_FORMAT", "no"), False),
        (UpstreamTimeout("too slow"), True),
        (UpstreamUnreachable("gone"), True),
    ],
)
async def test_nobody_holds_a_session_by_failing_adds_unless_words_may_have_arrived(
    everos: RecordingUpstream, ann: User, anna: User, failure: Any, held: bool
) -> None:
    everos.fail("add", failure)
    assert (await ann.add("hello")).status_code == failure.status
    assert (await anna.add("hello")).status_code == (403 if held else 200)


class FullDisk:
    """Lets so many writes through, then refuses every one."""

    def __init__(self, database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
        self._write = database.write
        self._monkeypatch = monkeypatch
        self._database = database
        self.left = 0

    def after(self, writes: int) -> None:
        self.left = writes
        self._monkeypatch.setattr(self._database, "write", self._refuse)

    def mend(self) -> None:
        self._monkeypatch.setattr(self._database, "write", self._write)

    async def _refuse(self, work: Any, *, owner: str | None) -> Any:
        if not self.left:
            raise StorageUnavailable("disk full")
        self.left -= 1
        return await self._write(work, owner=owner)


@pytest.fixture
def disk(database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch) -> FullDisk:
    return FullDisk(database, monkeypatch)


async def test_what_the_upstream_took_but_cannot_be_recorded_is_completed_by_the_same_request(
    house: House, everos: RecordingUpstream, ann: User, anna: User, disk: FullDisk
) -> None:
    message = ann.says([{"type": "image", "base64": PNG, "name": "board.png"}])
    disk.after(writes=2)  # the intent of the file, the claim
    response = await ann.add(message)
    assert error(response)[:2] == (503, "storage_unavailable")
    assert "same request again" in response.json()["error"]["message"]
    assert len(everos.requests("add")) == 1
    assert house.attachments.intents._in_use == set()
    disk.mend()
    house.clock.forward(seconds=2 * 3600)
    assert await house.attachments.sweep() == 1
    assert stored_files(house) == []
    assert (await anna.add("mine?")).status_code == 403
    assert (await ann.add(message)).status_code == 200
    assert [path.name for path in stored_files(house)] == ["board.png"]
    assert await count(house.database, "memory_attachments") == 1


async def test_a_refusal_is_told_even_when_what_was_kept_for_it_cannot_be_removed(
    house: House, everos: RecordingUpstream, ann: User, disk: FullDisk
) -> None:
    everos.fail("add", UpstreamRefused(422, "INVALID_INPUT", "too odd"))
    disk.after(writes=2)
    response = await ann.add(ann.says([{"type": "image", "base64": PNG, "name": "board.png"}]))
    assert response.json()["error"]["details"] == {"upstream": {"code": "INVALID_INPUT"}}
    assert house.attachments.intents._in_use == set()


async def test_a_long_body_with_a_key_is_read_off_the_event_loop(
    ann: User, everos: RecordingUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []

    def noted(*arguments: Any) -> Any:
        threads.append(threading.current_thread())
        return keyed_request(*arguments)

    monkeypatch.setattr(service, "keyed_request", noted)
    for text in ("short", "x" * 150_000):
        body = {"conversation_id": "1", "messages": [ann.says(text), ann.says(text)]}
        responses = [await ann.post("/memories/add", body, **{"Idempotency-Key": text[:5]}) for _ in range(2)]
        assert responses[0].content == responses[1].content
    assert [thread is threading.main_thread() for thread in threads] == [True, True, False, False]
    assert len(everos.requests("add")) == 2


async def test_a_session_that_holds_words_is_its_owners_for_good(house: House, ann: User, anna: User) -> None:
    assert (await ann.add("hello")).status_code == 200
    house.clock.forward(seconds=30 * 86_400)
    assert (await anna.add("hello")).status_code == 403


async def test_a_failed_add_leaves_nothing_behind(house: House, everos: RecordingUpstream, ann: User) -> None:
    everos.fail("add", UpstreamRefused(422, "INVALID_INPUT", "too odd"))
    response = await ann.add(ann.says([{"type": "image", "base64": PNG, "name": "board.png"}]))
    assert response.status_code == 422
    assert response.json()["error"]["details"] == {"upstream": {"code": "INVALID_INPUT"}}
    assert stored_files(house) == []
    for table in ("memory_attachments", "file_intents", "session_owners"):
        assert await count(house.database, table) == 0, table


async def test_an_add_that_succeeds_keeps_its_files_and_is_audited(
    house: House, everos: RecordingUpstream, ann: User
) -> None:
    item = {"type": "image", "base64": PNG, "name": "board.png"}
    assert (await ann.add(ann.says([{"type": "text", "text": "see board.png"}, item]))).status_code == 200
    assert [path.name for path in stored_files(house)] == ["board.png"]
    assert everos.sent("add")[0]["messages"][0]["content"][1] == item
    (row,) = await house.database.fetch(
        "SELECT user_id, action, object_type, object_id FROM audit_log WHERE action = 'add'"
    )
    assert row == ("ann", "add", "session", "chat:1")


async def test_a_client_that_goes_away_does_not_cancel_the_work(
    house: House, everos: RecordingUpstream, ann: User
) -> None:
    gate = everos.hold("add")
    gone = asyncio.create_task(ann.add(ann.says([{"type": "image", "base64": PNG, "name": "board.png"}])))
    while not everos.calls:
        await asyncio.sleep(0.01)
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    closing = asyncio.create_task(house.memories.close())
    await asyncio.sleep(0.02)
    assert not closing.done()
    gate.set()
    await closing
    assert await count(house.database, "memory_attachments") == 1


async def test_a_retry_with_the_same_key_gets_the_first_answer_and_the_upstream_sees_it_once(
    house: House, everos: RecordingUpstream, ann: User
) -> None:
    """F6: the upstream answers after the client gave up; the same add comes again."""
    body = {"conversation_id": "1", "messages": [ann.says("hello")]}
    gate = everos.hold("add")
    gone = asyncio.create_task(ann.post("/memories/add", body, **{"Idempotency-Key": "k1"}))
    while not everos.calls:
        await asyncio.sleep(0.01)
    gone.cancel()
    retry = asyncio.create_task(ann.post("/memories/add", {**body, **ann.credentials}, **{"Idempotency-Key": "k1"}))
    await asyncio.sleep(0.02)
    assert not retry.done()
    gate.set()
    first = await retry
    again = await ann.post("/memories/add", body, **{"Idempotency-Key": "k1"})
    assert (first.status_code, first.content) == (again.status_code, again.content)
    assert first.json()["data"] == {"message_count": 1, "status": "accumulated"}
    assert len(everos.requests("add")) == 1
    other = await ann.post("/memories/add", {**body, "app_id": "shop"}, **{"Idempotency-Key": "k1"})
    assert error(other)[:2] == (409, "conflict")


async def test_keys_count_for_flush_apart_and_a_failure_is_not_remembered(everos: RecordingUpstream, ann: User) -> None:
    body = {"conversation_id": "1", "messages": [ann.says("hello")]}
    everos.fail("add", UpstreamTimeout("too slow"))
    key = {"Idempotency-Key": "k1"}
    assert (await ann.post("/memories/add", body, **key)).status_code == 504
    assert (await ann.post("/memories/add", body, **key)).status_code == 200
    flushes = [await ann.post("/memories/flush", {"conversation_id": "1"}, **key) for _ in range(2)]
    assert [flush.json()["data"] for flush in flushes] == [{"status": "extracted"}] * 2
    assert flushes[0].content == flushes[1].content
    assert len(everos.requests("flush")) == 1


@pytest.mark.parametrize("key", ["", "a b", "x" * 256])
async def test_a_faulty_key_is_a_422(everos: RecordingUpstream, ann: User, key: str) -> None:
    body = {"conversation_id": "1", "messages": [ann.says("hello")]}
    response = await ann.post("/memories/add", body, **{"Idempotency-Key": key})
    assert error(response) == (422, "invalid_input", "Idempotency-Key")
    assert everos.calls == []


async def test_only_own_sessions_are_flushed(everos: RecordingUpstream, ann: User, anna: User) -> None:
    await ann.add("hello")
    assert error(await anna.flush())[:2] == (403, "forbidden")
    unknown = await anna.flush("nobody's")
    assert (unknown.status_code, unknown.json()["data"]) == (200, {"status": "no_extraction"})
    assert everos.requests("flush") == []
    own = await ann.flush()
    assert own.json()["data"] == {"status": "extracted"}
    assert everos.sent("flush") == [{"session_id": "chat:1", "app_id": "default", "project_id": "default"}]
    assert everos.callers("flush") == [Caller(user_id="ann")]
    refused = await ann.post("/memories/flush", {"session_id": "resource:ann:r1"})
    assert error(refused) == (422, "invalid_input", "session_id")


class TestOtherSenders:
    """The setting ``allow_other_senders``."""

    @pytest.fixture
    async def house(self, database: SqliteDatabase, tmp_path: Path, everos: RecordingUpstream) -> AsyncIterator[House]:
        house = House(database, tmp_path, everos, allow_other_senders=True)
        yield house
        await house.close()

    async def test_they_may_speak_unless_they_are_users(
        self, house: House, ann: User, anna: User, everos: RecordingUpstream
    ) -> None:
        assert (await ann.add(ann.says("hi", sender_id="guest"))).status_code == 200
        for sender in ("anna", "Anna", "ANNA"):
            response = await ann.add(ann.says("hi", sender_id=sender))
            assert error(response) == (422, "invalid_input", "messages.0.sender_id")
        assert len(everos.requests("add")) == 1


class TestClientUris:
    """F11: an upstream that opens URIs gets only those that the settings name."""

    @pytest.fixture
    async def house(self, database: SqliteDatabase, tmp_path: Path, everos: RecordingUpstream) -> AsyncIterator[House]:
        (tmp_path / "shared").mkdir()
        house = House(
            database,
            tmp_path / "data",
            everos,
            allowed_file_roots=(tmp_path / "shared",),
            allowed_uri_hosts=("files.example:443",),
        )
        yield house
        await house.close()

    @pytest.mark.parametrize(
        ("uri", "setting"),
        [
            ("file:///etc/hosts", "allowed_file_roots"),
            ("http://169.254.169.254/latest/meta-data", "allowed_uri_hosts"),
            ("http://127.0.0.1:8093/", "allowed_uri_hosts"),
            ("https://ann@files.example/a", "allowed_uri_hosts"),
        ],
    )
    async def test_others_are_a_422_that_names_the_setting(
        self, house: House, ann: User, anna: User, everos: RecordingUpstream, uri: str, setting: str
    ) -> None:
        response = await ann.add("fine", ann.says([{"type": "pdf", "uri": uri}]))
        assert error(response) == (422, "uri_not_allowed", "messages.1.content.0.uri")
        assert setting in response.json()["error"]["message"]
        assert everos.calls == []
        assert (await anna.add("the name is still free")).status_code == 200

    async def test_those_go_through_unchanged_and_are_mapped(
        self, house: House, ann: User, everos: RecordingUpstream, tmp_path: Path
    ) -> None:
        uris = [f"file://{tmp_path}/shared/a%20b.pdf", "https://files.example/film-quote.pdf"]
        assert (await ann.add(ann.says([{"type": "pdf", "uri": uri} for uri in uris]))).status_code == 200
        assert [item["uri"] for item in everos.sent("add")[0]["messages"][0]["content"]] == uris
        rows = await house.database.fetch("SELECT internal_uri, source FROM memory_attachments ORDER BY internal_uri")
        assert rows == [(uri, "memory_add_uri") for uri in uris]


async def test_an_upstream_that_opens_nothing_may_be_told_any_uri(
    embedded_house: House, embedded: RecordingUpstream
) -> None:
    ann = await embedded_house.user("ann")
    assert (await ann.add(ann.says([{"type": "pdf", "uri": "file:///etc/hosts"}]))).status_code == 200
    assert ids(await ann.search("PDF", method="keyword")) != []


@pytest.mark.parametrize(("levels", "status"), [(32, 200), (33, 422), (500, 422), (20_000, 400)])
async def test_what_could_not_be_shown_again_is_not_taken(embedded_house: House, levels: int, status: int) -> None:
    ann = await embedded_house.user("ann")
    message = ann.says([{"type": "text", "text": "the falcon", "extras": {}}])
    nested = b'{"a":' * levels + b"1" + b"}" * levels
    body = msgspec.json.encode({"session_id": "s", "messages": [message]}).replace(b"{}", nested)
    response = await embedded_house.client.post(
        "/memories/add", content=body, headers={**ann.headers, "Content-Type": "application/json"}
    )
    assert response.status_code == status
    if status == 422:
        assert error(response) == (422, "invalid_input", "messages.0.content.0.extras")
