"""Adds on the real engine: words, claim, files and record are stored together, in one transaction, or not at all."""

import base64
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memory_gateway.engine import ingest
from memory_gateway.gateway.attachments.service import Attachments
from memory_gateway.kit.errors import StorageUnavailable
from memory_gateway.settings import Settings
from memory_gateway.storage.port import Database
from memory_gateway.storage.sqlite import SqliteDatabase
from memory_gateway.upstream.embedded import EmbeddedUpstream
from tests.engine.conftest import open_talk
from tests.fakes.house import House, User

TABLES = ("session_owners", "audit_log", "engine_messages", "engine_spaces", "memory_attachments")
FILE = {"type": "doc", "base64": base64.b64encode(b"heron").decode(), "ext": "txt", "name": "a.txt"}


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_talk(tmp_path) as talk:
        house = House(talk.database, tmp_path, EmbeddedUpstream(talk.engine, Settings(data_dir=tmp_path)))
        yield house
        await house.close()


async def rows(database: Database) -> dict[str, int]:
    counted = {}
    for table in TABLES:
        ((counted[table],),) = await database.fetch(f"SELECT COUNT(*) FROM {table}")
    return counted


async def test_an_add_is_one_transaction_the_first_of_its_session_too(house: House, ann: User) -> None:
    if not isinstance(house.database, SqliteDatabase):
        pytest.skip("counts SQLite's transactions")
    for chat in ("1", "1", "2"):
        before = house.database.transactions
        assert (await ann.add("tea", "milk", chat=chat)).status_code == 200
        assert house.database.transactions == before + 1
    found = await rows(house.database)
    assert (found["session_owners"], found["engine_messages"]) == (2, 6)
    settled = await house.database.fetch("SELECT COUNT(*) FROM session_owners WHERE stored_at IS NOT NULL")
    assert settled == [(2,)]


async def test_what_cannot_be_stored_leaves_neither_claim_nor_record_nor_file(
    house: House, ann: User, anna: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await rows(house.database)

    async def broken(*_: object) -> None:
        raise StorageUnavailable("the disk is full")

    monkeypatch.setattr(ingest.SessionWriter, "_save", broken)
    response = await ann.add({**ann.says("tea"), "content": [{"type": "text", "text": "tea"}, FILE]})
    assert response.status_code == 503
    assert await rows(house.database) == before
    assert not [path for path in house.storage_root.rglob("*") if path.is_file()]
    monkeypatch.undo()
    assert (await anna.add("tea")).status_code == 200
    assert (await ann.add("tea")).status_code == 403


async def test_words_are_not_stored_where_the_record_of_them_cannot_be(
    house: House, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await rows(house.database)

    async def broken(*_: object) -> None:
        raise StorageUnavailable("the disk is full")

    monkeypatch.setattr(Attachments, "commit_in", broken)
    assert (await ann.add("tea")).status_code == 503
    assert await rows(house.database) == before
    monkeypatch.undo()
    assert (await ann.add("tea")).status_code == 200


async def test_of_two_users_at_once_one_has_the_session_and_the_others_words_are_nowhere(
    house: House, ann: User, anna: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one is told so by the transaction itself, whatever was read before it."""

    async def unseen(*_: object) -> bool:
        return False

    monkeypatch.setattr("memory_gateway.gateway.memories.ownership.Sessions.has_written", unseen)
    assert (await ann.add("tea of ann")).status_code == 200
    before = await rows(house.database)
    assert (await anna.add("tea of anna")).status_code == 403
    assert await rows(house.database) == before


async def test_a_long_add_claims_first_and_is_on_record_when_all_of_it_is_stored(
    house: House, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "TRANSACTION_PIECES", 2)
    before = await rows(house.database)
    writes = 0
    save = ingest.SessionWriter._save

    async def second_fails(self: ingest.SessionWriter) -> None:
        nonlocal writes
        writes += 1
        if writes == 2:
            raise StorageUnavailable("the disk is full")
        await save(self)

    monkeypatch.setattr(ingest.SessionWriter, "_save", second_fails)
    messages = [ann.says(text) for text in ("tea", "milk", "lemon")]
    assert (await ann.add(*messages)).status_code == 503
    after = await rows(house.database)
    assert after["session_owners"] == before["session_owners"] + 1
    assert after["audit_log"] == before["audit_log"]
    assert (await ann.add(*messages)).status_code == 200
    whole = await rows(house.database)
    assert (whole["engine_messages"], whole["audit_log"]) == (3, before["audit_log"] + 1)
