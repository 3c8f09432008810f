"""What is held between searches: never another answer than a fresh engine's, whoever wrote meanwhile and however."""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from memory_gateway.embeddings.cosine_scale import CosineScales
from memory_gateway.engine import recall, store
from memory_gateway.engine.engine import Engine
from memory_gateway.engine.parse import Parser
from memory_gateway.engine.schemas import Caller, FlushRequest, MemoryKey, Method, SearchReply
from memory_gateway.engine.vectors import VectorWorker
from memory_gateway.storage.leases import Leases
from memory_gateway.storage.sqlite import SqliteTransaction
from tests.engine.conftest import PlainReader, Talk, hidden, open_talk
from tests.fakes.databases import AnyDatabase, on_postgres, open_test_database
from tests.fakes.embedder import HashEmbedder

METHODS: tuple[Method, ...] = ("keyword", "vector", "hybrid", "agentic")
WORDS = ("tea", "milk", "lemon", "yesterday", "Ben", "the heron", "报告", "When did Ben have tea?")


@pytest.fixture
async def talk(tmp_path: Path) -> AsyncIterator[Talk]:
    async with open_talk(tmp_path, HashEmbedder()) as opened:
        yield opened


def fresh(talk: Talk, database: AnyDatabase | None = None) -> Talk:
    """An engine that has searched nothing yet, on the same database."""
    database = database or talk.database
    leases = Leases(database, talk.clock, "fresh")
    engine = Engine(database, talk.clock, Parser(PlainReader(), (), Path()), HashEmbedder(), leases)
    other = Talk(engine, database, talk.clock)
    other._seconds = talk._seconds
    return other


@asynccontextmanager
async def another_process(talk: Talk, folder: Path) -> AsyncIterator[Talk]:
    """Shares nothing but the database."""
    database = open_test_database(folder / "engine.db")
    yield fresh(talk, database)
    await database.close()


async def embed(talk: Talk) -> None:
    embedder = HashEmbedder()
    leases = Leases(talk.database, talk.clock, "worker")
    await VectorWorker(talk.database, embedder, leases, CosineScales(embedder)).catch_up()


async def answers(talk: Talk, query: str, **options: Any) -> list[SearchReply]:
    return [await talk.search(query, method=method, **options) for method in METHODS]


async def require_as_fresh(talk: Talk, *queries: str, **options: Any) -> None:
    """To the last bit, at the first time and at the next."""
    for query in queries:
        expected = await answers(fresh(talk), query, **options)
        for _ in range(2):
            assert await answers(talk, query, **options) == expected


def lines(reply: SearchReply) -> list[str]:
    return [fact["content"].split(": ")[1] for episode in reply.episodes for fact in episode["atomic_facts"]]


async def test_what_another_process_adds_is_found_at_once(talk: Talk, tmp_path: Path) -> None:
    await talk.say("I like tea", "and milk")
    assert lines(await talk.search("lemon")) == []
    async with another_process(talk, tmp_path) as other:
        await other.say("tea with lemon")
        found = await talk.search("lemon")
        assert lines(found) == ["tea with lemon", "and milk", "I like tea"]
        assert found.episodes[0]["episode"].endswith("tea with lemon")
        await other.say("lemon again, elsewhere", session="chat:2")
        assert len((await talk.search("lemon")).episodes) == 2
        await require_as_fresh(talk, "tea", "lemon")


async def test_what_another_process_adds_while_the_query_is_embedded_is_found(tmp_path: Path) -> None:
    class Slow(HashEmbedder):
        async def query(self, text: str) -> Any:
            if text == "tea":  # others are asked to know how cosines spread
                await other.say("tea with lemon")
            return await super().query(text)

    async with open_talk(tmp_path, Slow()) as talk, another_process(talk, tmp_path) as other:
        await talk.say("I like tea")
        for count in (2, 3):
            assert len(lines(await talk.search("tea", method="hybrid"))) == count


async def test_a_session_that_another_process_closes_is_the_same_episode(talk: Talk, tmp_path: Path) -> None:
    await talk.say("I like green tea in the morning. And milk.", "Where is the lemon?")
    before = await answers(talk, "tea")
    async with another_process(talk, tmp_path) as other:
        assert (await other.engine.flush(FlushRequest("chat:1"), Caller("ann"))).status == "extracted"
    assert await answers(talk, "tea") == before
    await require_as_fresh(talk, "tea", filters={"session_id": "chat:1"})


async def test_a_closed_episode_is_read_once_and_an_open_one_again_when_it_grows(talk: Talk) -> None:
    await talk.say("tea in the old kitchen")
    await talk.engine.flush(FlushRequest("chat:1"), Caller("ann"))
    await talk.say("tea in the new kitchen", session="chat:2")
    await talk.search("tea")
    await talk.say("with milk", session="chat:2")
    reply = await talk.search("tea")
    assert sorted(episode["episode"].count("\n") for episode in reply.episodes) == [0, 1]
    episodes = talk.engine._held.episodes._episodes._held
    assert sorted(held.turns for held, _ in episodes.values()) == [2, 3]


async def test_a_new_name_of_a_participant_counts_from_its_message_on(talk: Talk) -> None:
    await talk.add(talk.message("the heron is grey", "bot", "assistant", sender_name="Ben"))
    await talk.add(talk.message("the heron is white", "ann"))
    assert lines(await talk.search("Ben heron"))[0] == "the heron is grey"
    await talk.add(talk.message("I fly", "bot", "assistant", sender_name="Tom"))
    await require_as_fresh(talk, "Ben heron", "Tom heron")


async def test_what_is_deleted_is_gone_at_once_and_back_at_once(talk: Talk) -> None:
    await talk.say("tea with milk", "tea with lemon")
    await talk.engine.flush(FlushRequest("chat:1"), Caller("ann"))
    await talk.say("tea alone", session="chat:2")
    before = await talk.search("tea")
    caller = hidden("episode", before.episodes[0]["id"])
    assert [one["id"] for one in (await talk.search("tea", caller=caller)).episodes] == [before.episodes[1]["id"]]
    await require_as_fresh(talk, "tea", "lemon", caller=caller)
    assert await talk.search("tea") == before


async def test_a_single_deleted_message_is_gone_from_the_episode(talk: Talk) -> None:
    await talk.say("tea with milk", "tea with lemon")
    reply = await talk.search("tea", filters={"session_id": "chat:1"})
    caller = hidden("unprocessed_message", reply.unprocessed_messages[0]["id"])
    shown = await talk.search("tea", caller=caller)
    assert lines(shown) == ["tea with lemon"]
    assert "milk" not in shown.episodes[0]["episode"] + shown.episodes[0]["summary"] + shown.episodes[0]["subject"]
    await require_as_fresh(talk, "tea", "milk", caller=caller)
    assert await talk.search("tea", filters={"session_id": "chat:1"}) == reply


async def test_after_an_erasure_nothing_is_held_and_nothing_is_found(talk: Talk, tmp_path: Path) -> None:
    held = talk.engine._held
    await talk.say("tea with milk")
    await talk.search("tea")
    kept = (held.columns._spaces, held.views._views, held.episodes._episodes)
    assert all(one._held for one in kept)
    await talk.engine.erase("ann")
    assert not any(one._held or one._bytes for one in kept)
    await talk.say("coffee")
    assert lines(await talk.search("tea with milk")) == []
    async with another_process(talk, tmp_path) as other:
        await other.engine.erase("ann")
    assert (await talk.search("coffee")).episodes == []


async def test_an_answer_may_be_written_to(talk: Talk) -> None:
    await talk.say("tea with milk")
    first = await talk.search("tea")
    first.episodes[0]["sender_ids"].append("eve")
    first.episodes[0]["atomic_facts"][0]["content"] = "changed"
    first.episodes[0]["episode"] = "changed"
    await require_as_fresh(talk, "tea")


async def test_look_alike_users_are_shown_their_own(talk: Talk) -> None:
    for user in ("ann", "anna", "a_b", "axb"):
        await talk.say(f"tea of {user}", user=user)
    for _ in range(2):
        for user in ("ann", "anna", "a_b", "axb"):
            assert lines(await talk.search("tea", user=user)) == [f"tea of {user}"]


@pytest.mark.skipif(on_postgres(), reason="counts the statements of SQLite's transactions")
async def test_a_search_of_an_unchanged_space_only_asks_whether_it_is_unchanged(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await talk.say("tea with milk", "tea with lemon")
    await embed(talk)
    asked: list[str] = []
    fetch = SqliteTransaction.fetch
    fetch_one = SqliteTransaction.fetch_one

    async def noted(self: SqliteTransaction, sql: str, *params: Any) -> Any:
        asked.append(sql)
        return await fetch(self, sql, *params)

    async def noted_one(self: SqliteTransaction, sql: str, *params: Any) -> Any:
        asked.append(sql)
        return await fetch_one(self, sql, *params)

    monkeypatch.setattr(SqliteTransaction, "fetch", noted)
    monkeypatch.setattr(SqliteTransaction, "fetch_one", noted_one)
    once = [store.FIND_SPACE, store.SPACE_COUNTS]
    wanted: dict[Method, list[str]] = {"keyword": once, "hybrid": [*once, store.SPACE_COUNTS, store.SERVING_SET]}
    for method, expected in wanted.items():
        await talk.search("tea", method=method)
        asked.clear()
        await talk.search("tea", method=method)
        assert asked == expected


async def test_terms_are_let_go_of_when_they_take_too_much(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    await talk.say("tea with milk", "tea with lemon", "heron")
    monkeypatch.setattr(recall, "_MOST_EVIDENCE_BYTES", 1_500)
    for query in ("tea milk lemon", "heron", "tea lemon"):
        await require_as_fresh(talk, query)
    ((view, counted),) = talk.engine._held.views._views._held.values()
    await talk.search("tea")
    assert len(view._evidence) <= 3
    assert counted > 0


async def test_what_a_view_grows_by_counts_at_once(talk: Talk) -> None:
    """A view that is used once and never again counts with all that it holds."""
    await talk.say("tea with milk", "tea with lemon")
    await talk.search("tea milk lemon heron")
    views = talk.engine._held.views._views
    ((view, counted),) = views._held.values()
    assert view._evidence
    assert views._bytes == counted > view.size > view._evidence_bytes > 0


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_happens_in_between_answers_are_those_of_a_fresh_engine(
    talk: Talk, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    hidden_ones: tuple[MemoryKey, ...] = ()
    async with another_process(talk, tmp_path) as other:
        for _ in range(12):
            who = chance.choice((talk, other))
            session = f"chat:{chance.randint(1, 3)}"
            match chance.choice(("say", "say", "say", "flush", "embed", "hide", "show")):
                case "say":
                    sender, name = chance.choice((("ann", "Ann"), ("bot", "Ben"), ("bot", "Tom")))
                    text = " ".join(chance.choices(WORDS, k=3))
                    role = "user" if sender == "ann" else "assistant"
                    await who.add(who.message(text, sender, role, sender_name=name), session=session)
                case "flush":
                    await who.engine.flush(FlushRequest(session), Caller("ann"))
                case "embed":
                    await embed(who)
                case "hide":
                    reply = await talk.search(chance.choice(WORDS), filters={"session_id": session})
                    kinds = (("episode", reply.episodes), ("unprocessed_message", reply.unprocessed_messages))
                    every = [MemoryKey(kind, item["id"]) for kind, items in kinds for item in items]  # type: ignore[arg-type]  # their literals
                    hidden_ones = tuple(chance.sample(every, min(2, len(every))))
                case "show":
                    hidden_ones = ()
            query = " ".join(chance.sample(WORDS, 2))
            caller = Caller("ann", hidden=hidden_ones)
            await require_as_fresh(talk, query, caller=caller)
            await require_as_fresh(talk, query, caller=caller, filters={"session_id": {"in": ["chat:1", "chat:3"]}})
