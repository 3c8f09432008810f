"""Three gateway processes on one PostgreSQL, under 32 connections of random mixed work, are as right as one process.

What is left is compared with a twin: one process on SQLite, to which the same work was given in order.
"""

import asyncio
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest
from litestar import Litestar
from msgspec import Struct

from memory_gateway.server import FACES, open_faces
from memory_gateway.settings import Settings
from memory_gateway.storage.choose import FILE_NAME
from memory_gateway.storage.port import Database
from memory_gateway.storage.postgres import PostgresDatabase
from memory_gateway.storage.sqlite import SqliteDatabase
from tests.e2e.mixed_work import USERS, Edit, MixedWork, Notes, drawn, landmark
from tests.fakes.databases import TEMPLATE, database_url
from tests.fakes.gateways import ADMIN_KEY, Caller, Clients, running_gateways
from tests.fakes.postgres import running_server

pytestmark = pytest.mark.slow

SEED = 6
STEPS = 240
NOT_REPEATED = ("chat:edited-", "chat:seen-")
"""Sessions of which the twin hears nothing."""

FACTS = """
SELECT owner.user_id, content, importance, priority, category, keywords, source, access_count
FROM memory_entries JOIN memory_users AS owner ON owner.user_no = memory_entries.user_no
"""
COUNTED = """
SELECT owner.user_id, SUM(counted.entries) FROM memory_counts AS counted
JOIN memory_users AS owner ON owner.user_no = counted.user_no GROUP BY owner.user_id
"""
OWNERS = "SELECT session_id, user_id FROM session_owners"
ADDS = "SELECT user_id, object_id, COUNT(*) FROM audit_log WHERE action = 'add' GROUP BY user_id, object_id"
UPLOADS = "SELECT user_id, COUNT(*) FROM audit_log WHERE action = 'upload' GROUP BY user_id"
RESOURCES = "SELECT user_id, sha256, status, deleted_at FROM user_resources"


class Left(Struct, frozen=True):
    """What the work left: what each user finds, and what the database holds."""

    lines: dict[str, list[tuple[str, str]]]
    facts: list[tuple[Any, ...]]
    counted: dict[str, int]
    owners: dict[str, str]
    adds: dict[tuple[str, str], int]
    uploads: dict[str, int]
    resources: list[tuple[Any, ...]]


class Outcome(Struct, frozen=True):
    """One run of the processes and of the twin. ``shown``: what each process shows of each edited memory."""

    notes: Notes
    landmark_ids: dict[tuple[str, int], str]
    left: Left
    twin: Left
    shown: dict[tuple[str, int], list[str | None]]
    histories: dict[tuple[str, int], list[dict[str, Any]]]
    logs: str


def test_three_processes_under_mixed_work_are_as_right_as_one(tmp_path: Path) -> None:
    outcome = _outcome(tmp_path)
    no_caller_saw_anything_wrong_meanwhile(outcome)
    a_user_id_was_given_once(outcome)
    a_session_has_one_owner_for_ever(outcome)
    every_acknowledged_message_is_found_once_by_its_owner_and_by_nobody_else(outcome)
    one_idempotency_key_is_one_effect_and_one_reply_to_the_byte(outcome)
    facts_that_say_the_same_are_one_and_no_word_of_them_is_lost(outcome)
    every_answered_read_of_a_fact_is_counted_once(outcome)
    the_same_bytes_of_a_user_are_one_resource(outcome)
    edits_at_once_leave_what_some_order_of_them_would(outcome)


def _outcome(folder: Path) -> Outcome:
    with running_server() as server:
        url = database_url(server.get_uri(), TEMPLATE)
        with running_gateways(folder, url) as gateways:
            work, lines, shown, histories = asyncio.run(_on_processes(Clients(gateways, SEED)))
            logs = [gateway.log for gateway in gateways]
        left = asyncio.run(_left(PostgresDatabase(url), lines))
    twin = asyncio.run(_on_twin(work.notes, folder / "twin"))
    log = "\n".join(path.read_text("utf-8") for path in logs)
    return Outcome(work.notes, work.landmarks, left, twin, shown, histories, log)


async def _on_processes(clients: Clients) -> tuple[MixedWork, Any, Any, Any]:
    async with clients:
        work = MixedWork(clients)
        await work.prepare()
        await work.run(drawn(SEED, STEPS))
        found = [await _lines(at, work.callers) for at in clients.gateways]
        assert found[0] == found[1] == found[2], "the processes show different memories"
        shown, histories = {}, {}
        for (user_id, number), memory_id in work.edited.items():
            caller = work.callers[user_id]
            shown[user_id, number] = [await _shown(caller, at, number, memory_id) for at in clients.gateways]
            reply = await clients.gateway().get(f"/memories/{memory_id}/history", headers=caller.headers)
            histories[user_id, number] = reply.json()["history"]
        await work.read_once_more()
        return work, found[0], shown, histories


async def _on_twin(notes: Notes, folder: Path) -> Left:
    """What was done, once each, one after the other; what was refused comes last, to be refused again."""
    settings = Settings(data_dir=folder, embedder="none", admin_key=ADMIN_KEY)
    async with open_faces(settings, FACES) as apps:
        gateway, service = (_client(app, path) for app, path in zip(apps, ("", "/api/v1"), strict=True))
        callers = {}
        for user_id in USERS:
            reply = await gateway.post("/users", json={"user_id": user_id}, headers={"X-Admin-Key": ADMIN_KEY})
            callers[user_id] = Caller(user_id, reply.json()["user_key"])
            for number in range(3):
                body = {"user_id": user_id, "content": landmark(user_id, number)}
                memory_id = (await service.post("/memories", json=body)).json()["memory"]["id"]
                for _ in range(notes.accesses[user_id, number]):
                    await service.get(f"/memories/{memory_id}")
        for add in sorted(notes.adds, key=lambda add: add.status):
            caller = callers[add.user_id]
            reply = await caller.add(gateway, add.session, [caller.message(add.text, add.moment)])
            assert reply.status_code == add.status, f"the twin answers {add} with {reply.status_code}"
        for _, body in notes.facts:
            await service.post("/memories", json=body)
        for user_id, content in notes.uploads:
            await callers[user_id].upload(gateway, "file.txt", content)
        lines = await _lines(gateway, callers)
    return await _left(SqliteDatabase(folder / FILE_NAME), lines)


def _client(app: Litestar, path: str) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app=app)  # type: ignore[arg-type]
    return httpx.AsyncClient(transport=transport, base_url=f"http://127.0.0.1{path}")


async def _lines(at: httpx.AsyncClient, callers: dict[str, Caller]) -> dict[str, list[tuple[str, str]]]:
    """Everything that each user has said, by session, as it is found."""
    return {
        user_id: sorted(
            (result["session_id"], line)
            for result in await caller.search(at, "falcon")
            for line in result["text"].splitlines()
        )
        for user_id, caller in callers.items()
    }


async def _shown(caller: Caller, at: httpx.AsyncClient, number: int, memory_id: str) -> str | None:
    """The text that stands for the memory, None where it is deleted."""
    results = await caller.search(at, "swallow", filters={"session_id": f"chat:edited-{number}-{caller.user_id}"})
    return next((_words(result["text"]) for result in results if result["id"] == memory_id), None)


async def _left(database: Database, lines: dict[str, list[tuple[str, str]]]) -> Left:
    try:
        return Left(
            lines,
            sorted(
                (
                    user_id,
                    sorted(content.splitlines()),
                    importance,
                    priority,
                    category,
                    sorted(json.loads(keywords)),
                    *rest,
                )
                for user_id, content, importance, priority, category, keywords, *rest in await database.fetch(FACTS)
            ),
            {user_id: int(count) for user_id, count in await database.fetch(COUNTED)},
            {
                session_id: user_id
                for session_id, user_id in await database.fetch(OWNERS)
                if not session_id.startswith(("resource:", *NOT_REPEATED))
            },
            {
                (user_id, session_id): count
                for user_id, session_id, count in await database.fetch(ADDS)
                if not session_id.startswith(NOT_REPEATED)
            },
            dict(await database.fetch(UPLOADS)),
            sorted(await database.fetch(RESOURCES)),
        )
    finally:
        await database.close()


def no_caller_saw_anything_wrong_meanwhile(outcome: Outcome) -> None:
    """Such as a word that was acknowledged by one process and not found by another, or found by another user."""
    assert outcome.notes.faults == []
    assert "Traceback" not in outcome.logs


def a_user_id_was_given_once(outcome: Outcome) -> None:
    for replies in outcome.notes.registrations:
        assert (sorted(replies[:3]), replies[3]) == ([201, 409, 409], 409)


def a_session_has_one_owner_for_ever(outcome: Outcome) -> None:
    writers: dict[str, set[str]] = {}
    refused: dict[str, set[str]] = {}
    for add in outcome.notes.adds:
        (writers if add.status == 200 else refused).setdefault(f"chat:{add.session}", set()).add(add.user_id)
    assert {session: {owner} for session, owner in outcome.left.owners.items()} == writers
    raced = [session for session in writers if session.startswith("chat:race-")]
    assert raced
    assert all(refused[session] == set(USERS) - writers[session] for session in raced)
    assert outcome.left.owners == outcome.twin.owners


def every_acknowledged_message_is_found_once_by_its_owner_and_by_nobody_else(outcome: Outcome) -> None:
    for user_id in USERS:
        own = Counter(
            (f"chat:{add.session}", add.text)
            for add in outcome.notes.adds
            if (add.user_id, add.status) == (user_id, 200)
        )
        assert own, f"{user_id} has said nothing"
        assert Counter((session, _words(line)) for session, line in outcome.left.lines[user_id]) == own
    assert outcome.left.lines == outcome.twin.lines


def _words(line: str) -> str:
    return re.sub(r"^\[.*?\] \w+: ", "", line)


def one_idempotency_key_is_one_effect_and_one_reply_to_the_byte(outcome: Outcome) -> None:
    assert outcome.notes.keyed
    for key, replies in outcome.notes.keyed.items():
        assert len(set(replies)) == 1, f"{key}: {replies}"
        assert replies[0][0] == 200
    assert outcome.left.adds == outcome.twin.adds


def facts_that_say_the_same_are_one_and_no_word_of_them_is_lost(outcome: Outcome) -> None:
    assert outcome.left.facts == outcome.twin.facts
    assert outcome.left.counted == outcome.twin.counted
    said = {(user_id, body["content"]) for user_id, body in outcome.notes.facts}
    held = Counter((user_id, line) for user_id, lines, *_ in outcome.left.facts for line in lines)
    assert dict.fromkeys(said, 1) == {one: count for one, count in held.items() if " " in one[1]}


def every_answered_read_of_a_fact_is_counted_once(outcome: Outcome) -> None:
    counts = {lines[0]: fact[-1] for user_id, lines, *fact in outcome.left.facts}
    assert sum(outcome.notes.accesses.values()) > 30
    for user_id, number in outcome.landmark_ids:
        assert counts[landmark(user_id, number)] == outcome.notes.accesses[user_id, number]


def the_same_bytes_of_a_user_are_one_resource(outcome: Outcome) -> None:
    assert outcome.notes.uploads
    for place, replies in outcome.notes.uploads.items():
        assert len({resource_id for _, resource_id in replies}) == 1, f"{place}: {replies}"
        assert Counter(status for status, _ in replies)[201] == 1, f"{place}: {replies}"
    assert outcome.left.resources == outcome.twin.resources
    assert outcome.left.uploads == outcome.twin.uploads


def edits_at_once_leave_what_some_order_of_them_would(outcome: Outcome) -> None:
    assert sum(map(len, outcome.notes.edits.values())) > 20
    for place, edits in outcome.notes.edits.items():
        shown, history = outcome.shown[place], outcome.histories[place]
        assert shown[0] == shown[1] == shown[2], f"the processes show {place} differently"
        done = [edit for edit in edits if edit.status == 200]
        assert shown[0] in _possible(done, place), f"{place} shows {shown[0]!r} after {done}"
        kinds = Counter(entry["action"] for entry in history)
        assert kinds["tombstone"] - kinds["restore"] == (shown[0] is None)
        texts = [entry["text"] for entry in history if entry["action"] == "override"]
        assert sorted(texts) == sorted(edit.text for edit in done if edit.kind == "override")


def _possible(done: list[Edit], place: tuple[str, int]) -> set[str | None]:
    """What may stand at the end: each edit that was not over before another of its sort began may be the last."""
    last = {edit.kind for edit in _last([edit for edit in done if edit.kind in {"delete", "restore"}])}
    texts = {
        edit.text if edit.kind == "override" else f"swallow {place[1]} original"
        for edit in _last([edit for edit in done if edit.kind in {"override", "remove"}])
    }
    possible: set[str | None] = set(texts or {f"swallow {place[1]} original"})
    return possible | ({None} if "delete" in last else set()) if "restore" in last or not last else {None}


def _last(edits: list[Edit]) -> list[Edit]:
    return [edit for edit in edits if not any(other.begun > edit.ended for other in edits)]
