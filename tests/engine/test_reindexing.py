"""A changed model: the former vectors answer until the new ones know as much, whatever comes in between."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memory_gateway.embeddings.cosine_scale import CosineScales
from memory_gateway.embeddings.port import Embedder
from memory_gateway.engine import engine as engines
from memory_gateway.engine import meanings, vectors
from memory_gateway.engine.engine import Engine
from memory_gateway.engine.held_vectors import stored_model
from memory_gateway.engine.parse import Parser
from memory_gateway.engine.schemas import Caller, Method, SearchReply
from memory_gateway.engine.search import open_for
from memory_gateway.engine.vector_sets import VectorSets, begin_anew
from memory_gateway.engine.vectors import BATCH_TURNS, VectorWorker, next_backlog
from memory_gateway.kit.errors import EmbeddingUnavailable
from memory_gateway.storage.leases import Leases
from tests.engine.conftest import PlainReader, Talk, open_talk
from tests.fakes.embedder import HashEmbedder

METHODS: tuple[Method, ...] = ("keyword", "vector", "hybrid", "agentic")
QUERIES = ("green tea leaves", "who rows a boat", "the heron", "绿茶", "When did Ben drink tea?")
SIZES = {"old": 64, "new": 32, "third": 48}
SETS = "SELECT set_no, SUM(LENGTH(vectors)) FROM engine_vectors GROUP BY set_no ORDER BY set_no"
LOOK_ALIKES = ("ann", "anna", "a_b")


def embedder(model: str) -> HashEmbedder:
    return HashEmbedder(SIZES[model], model)


def make(model: str, dimensions: int) -> Embedder | None:
    return HashEmbedder(dimensions, model)


class Crash(Exception):
    """The process ends here."""


class DyingEmbedder(HashEmbedder):
    """Ends its process when it has embedded so many batches."""

    def __init__(self, model: str, batches: int) -> None:
        super().__init__(SIZES[model], model)
        self.batches = batches

    async def passages(self, texts: Sequence[str]) -> np.ndarray:
        if self.batches == 0:
            raise Crash
        self.batches -= 1
        return await super().passages(texts)


def worker(talk: Talk, by: HashEmbedder, holder: str = "w") -> VectorWorker:
    return VectorWorker(talk.database, by, Leases(talk.database, talk.clock, holder), CosineScales(by))


async def embed(talk: Talk, model: str) -> HashEmbedder:
    by = embedder(model)
    await worker(talk, by).catch_up()
    return by


async def embed_in_part(talk: Talk, model: str, batches: int = 1) -> HashEmbedder:
    by = DyingEmbedder(model, batches)
    with pytest.raises(Crash):
        await worker(talk, by).catch_up()
    return by


@asynccontextmanager
async def process(
    talk: Talk, own: HashEmbedder | None, make_embedder: Callable[[str, int], Embedder | None] = make
) -> AsyncIterator[Talk]:
    """Another engine on the same database, set to this model."""
    parser = Parser(PlainReader(), (), Path())
    leases = Leases(talk.database, talk.clock, "other")
    engine = Engine(talk.database, talk.clock, parser, own, leases, make_embedder=make_embedder)
    other = Talk(engine, talk.database, talk.clock)
    other._seconds = talk._seconds
    try:
        yield other
    finally:
        await engine.close()


async def answers(talk: Talk, own: str, **options: Any) -> list[SearchReply]:
    """Of an engine that has searched nothing yet."""
    async with process(talk, embedder(own)) as fresh:
        return await asked(fresh, **options)


async def asked(talk: Talk, **options: Any) -> list[SearchReply]:
    return [await talk.search(query, method=method, **options) for query in QUERIES for method in METHODS]


async def tell(talk: Talk, user: str = "ann", more: int = 2 * BATCH_TURNS) -> None:
    await talk.say("green tea with leaves", "Ben rows his boat", "a heron stands there", user=user, session=f"{user}:1")
    await talk.say("绿茶很好喝", "we drink it on Sunday", user=user, session=f"{user}:2")
    if more:
        await talk.say(*(f"line {number} of the log" for number in range(more)), user=user, session=f"{user}:3")


@pytest.fixture
async def talk(tmp_path: Path) -> AsyncIterator[Talk]:
    async with open_talk(tmp_path, embedder("new"), make_embedder=make) as opened:
        yield opened


async def test_until_the_new_vectors_are_as_many_answers_are_those_of_the_former_model(talk: Talk) -> None:
    await tell(talk)
    await embed(talk, "old")
    before = await answers(talk, "old")
    assert await asked(talk) == before
    for _ in range(2):
        await embed_in_part(talk, "new")
        assert await asked(talk) == before
    assert await talk.database.fetch(SETS) == [(0, 69 * SIZES["old"]), (1, 64 * SIZES["new"])]


async def test_afterwards_they_are_those_of_a_store_that_never_had_another(talk: Talk, tmp_path: Path) -> None:
    await tell(talk)
    await embed(talk, "old")
    await asked(talk)
    await embed_in_part(talk, "new")
    await asked(talk)
    await embed(talk, "new")
    (tmp_path / "fresh").mkdir()
    async with open_talk(tmp_path / "fresh", embedder("new")) as fresh:
        await tell(fresh)
        await embed(fresh, "new")
        assert await asked(talk) == await asked(fresh)
    assert await talk.database.fetch(SETS) == [(1, 69 * SIZES["new"])], "the former vectors are gone"


async def test_a_crash_at_any_batch_embeds_nothing_twice(talk: Talk) -> None:
    await tell(talk)
    await embed(talk, "old")
    parts = [await embed_in_part(talk, "new") for _ in range(2)]
    parts.append(await embed(talk, "new"))
    texts = [text for part in parts for text in part.embedded]
    assert len(texts) == len(set(texts)) == 69
    assert await talk.database.fetch(SETS) == [(1, 69 * SIZES["new"])]


async def test_a_crash_while_many_spaces_change_leaves_each_with_one_model_or_the_other(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = [f"user{number}" for number in range(70)]
    for user in users:
        await talk.say("green tea", "black tea", user=user)
    await embed(talk, "old")
    begun: list[int] = []

    async def begin_some(transaction: Any, space_no: int, model: str) -> None:
        if len(begun) == 10:
            raise Crash
        begun.append(space_no)
        await begin_anew(transaction, space_no, model)

    monkeypatch.setattr(vectors, "begin_anew", begin_some)
    with pytest.raises(Crash):
        await embed(talk, "new")
    models = "SELECT embedding_model, COUNT(*) FROM engine_spaces GROUP BY embedding_model"
    assert dict(await talk.database.fetch(models)) == {stored_model("new", 32): 10, stored_model("old", 64): 60}
    for user in (users[0], users[-1]):
        assert await talk.found("green", user=user, method="vector") == ["user: green tea".replace("user", user)]
    progress = await talk.engine.reindexing()
    assert progress is not None
    assert (progress.done, progress.of) == (0, 140)
    monkeypatch.undo()
    assert len((await embed(talk, "new")).embedded) == 140
    assert await talk.engine.reindexing() is None


async def test_turns_that_come_meanwhile_are_found_by_words_and_then_by_meaning(talk: Talk) -> None:
    await tell(talk)
    await embed(talk, "old")
    await embed_in_part(talk, "new")
    await talk.say("marzipan octopus arrives", session="late")
    new = "ann: marzipan octopus arrives"
    assert (await talk.found("marzipan octopus", method="hybrid"))[0] == new
    assert new not in await talk.found("octopus marzipan", method="vector")
    await embed_in_part(talk, "new", 1)
    by = DyingEmbedder("new", 1)
    await worker(talk, by).catch_up()
    assert by.embedded[-1] == new
    assert (await talk.found("octopus marzipan", method="vector"))[0] == new


async def test_the_new_vectors_answer_when_they_are_as_many_as_the_former_ones(talk: Talk) -> None:
    await talk.say(*(f"line {number}" for number in range(BATCH_TURNS)))
    await embed(talk, "old")
    await talk.say(*(f"late {number}" for number in range(5)))
    await embed_in_part(talk, "new")
    ((row),) = await talk.database.fetch("SELECT embedding_model, embedded_count, former_model FROM engine_spaces")
    assert row == (stored_model("new", 32), BATCH_TURNS, None)
    assert await talk.engine.backlog() == 5


async def test_what_has_no_vector_at_all_comes_before_what_has_a_former_one(talk: Talk) -> None:
    await talk.say("green tea", user="anna")
    await embed(talk, "old")
    await embed_in_part(talk, "new", 0)
    await tell(talk)
    by = await embed(talk, "new")
    assert by.embedded[-1] == "anna: green tea"


async def test_people_with_names_alike_change_each_for_themselves(talk: Talk) -> None:
    for more, user in zip((0, 2 * BATCH_TURNS, 40), LOOK_ALIKES, strict=True):
        await tell(talk, user, more)
    await embed(talk, "old")
    old = {user: await answers(talk, "old", user=user) for user in LOOK_ALIKES}
    await embed_in_part(talk, "new", 2)
    done = "SELECT user_id, embedded_count FROM engine_spaces WHERE former_model IS NULL"
    assert await talk.database.fetch(done) == [("ann", 5)]
    assert [await asked(talk, user=user) for user in LOOK_ALIKES[1:]] == [old[user] for user in LOOK_ALIKES[1:]]
    ann = await asked(talk, user="ann")
    assert ann != old["ann"]
    await embed(talk, "new")
    assert await asked(talk, user="ann") == ann
    assert await asked(talk, user="anna") != old["anna"]


async def test_an_erasure_in_between_takes_both_sets_and_nobody_elses(talk: Talk) -> None:
    for user in LOOK_ALIKES:
        await tell(talk, user, 60)
    await embed(talk, "old")
    await embed_in_part(talk, "new", 1)
    anna = await asked(talk, user="anna")
    rows = "SELECT space_no, set_no FROM engine_vectors ORDER BY space_no, set_no"
    assert await talk.database.fetch(rows) == [(1, 0), (1, 1), (2, 0), (3, 0)]
    by = worker(talk, embedder("new"))
    new = stored_model("new", 32)
    backlog = await talk.database.read(lambda transaction: next_backlog(transaction, new))
    assert backlog is not None
    assert backlog.space_no == 1
    await talk.engine.erase("ann")
    await talk.engine.erase("a_b")
    await by._embed(backlog)  # read before the erasure, saved after it
    assert await talk.database.fetch(rows) == [(2, 0)]
    assert await asked(talk, user="anna") == anna
    assert await by.catch_up() == 65
    assert await talk.database.fetch(rows) == [(2, 1)]
    assert (await talk.search("tea", user="ann", method="hybrid")).episodes == []


async def test_changing_back_embeds_nothing_again(talk: Talk) -> None:
    await tell(talk)
    await embed(talk, "old")
    before = await answers(talk, "old")
    await embed_in_part(talk, "new")
    assert (await embed(talk, "old")).embedded == []
    assert await answers(talk, "old") == before
    assert await asked(talk) == before
    assert await talk.database.fetch(SETS) == [(0, 69 * SIZES["old"])]
    await talk.say("one more line")
    assert (await embed(talk, "old")).embedded == ["ann: one more line"]


async def test_a_third_model_in_between_leaves_the_vectors_that_are_whole(talk: Talk) -> None:
    await tell(talk)
    await embed(talk, "old")
    before = await answers(talk, "old")
    await embed_in_part(talk, "new")
    await embed_in_part(talk, "third")
    assert await asked(talk) == before
    await embed(talk, "third")
    assert await talk.database.fetch(SETS) == [(1, 69 * SIZES["third"])]
    assert await asked(talk) == await answers(talk, "third")


async def test_two_processes_with_different_models_do_not_make_each_others_vectors_anew(
    talk: Talk, caplog: pytest.LogCaptureFixture
) -> None:
    await tell(talk)
    old, new = embedder("old"), embedder("new")
    first, second = worker(talk, old, "first"), worker(talk, new, "second")
    for _ in range(3):
        await first.catch_up()
        assert await second.catch_up() == 0
    assert (len(old.embedded), new.embedded) == (69, [])
    assert caplog.text.count("this process's model has its turn when that process ends") == 1
    assert await asked(talk) == await answers(talk, "old"), "the second answers by the first one's vectors"
    await talk.say("one more line")
    assert await second.catch_up() == 0
    assert await first.catch_up() == 1
    first.start()
    await first.stop()
    assert await second.catch_up() == 70
    assert await first.catch_up() == 0
    assert await asked(talk) == await answers(talk, "new")


async def test_whoever_embeds_keeps_the_lease_while_there_is_nothing_to_do(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "_IDLE_SECONDS", 0.01)
    monkeypatch.setattr(vectors, "_RENEWAL_SECONDS", 0.0)
    await talk.say("green tea")
    first = worker(talk, embedder("old"), "first")
    first.start()
    expiry = "SELECT expires_at_ms FROM leases WHERE holder = 'first'"
    while not await talk.database.fetch(expiry) or await talk.engine.backlog():
        await asyncio.sleep(0.01)
    talk.clock.now_ms += 50_000
    ends = talk.clock.now_ms + 60_000
    async with asyncio.timeout(10):
        while await talk.database.fetch(expiry) != [(ends,)]:
            await asyncio.sleep(0.01)
    await first.stop()
    assert await talk.database.fetch(expiry) == []


async def test_the_running_engine_changes_the_model_by_itself_and_tells_how_far_it_is(talk: Talk) -> None:
    await tell(talk)
    await embed(talk, "old")
    await embed_in_part(talk, "new")
    progress = await talk.engine.reindexing()
    assert progress is not None
    assert (progress.done, progress.of, progress.searched_by) == (BATCH_TURNS, 69, "former_vectors")
    assert await talk.engine.backlog() == 69 - BATCH_TURNS
    talk.clock.now_ms += 61_000  # the process that went before has died with the lease
    talk.engine.start()
    async with asyncio.timeout(20):
        while await talk.engine.reindexing() is not None:
            await asyncio.sleep(0.02)
    assert await talk.engine.backlog() == 0
    assert await asked(talk) == await answers(talk, "new")


async def test_where_the_former_model_cannot_be_asked_words_alone_answer_and_health_says_so(talk: Talk) -> None:
    await tell(talk)
    await embed(talk, "old")
    await embed_in_part(talk, "new")
    async with process(talk, None) as by_words, process(talk, embedder("new"), meanings.make_none) as without:
        for query in QUERIES:
            assert await without.search(query, method="hybrid") == await by_words.search(query, method="hybrid")
        with pytest.raises(EmbeddingUnavailable, match="new ones are made"):
            await without.search("tea", method="vector")
        progress = await without.engine.reindexing()
        assert progress is not None
        assert progress.searched_by == "words"
        await embed(talk, "new")
        assert await asked(without) == await answers(talk, "new")
        assert await without.engine.reindexing() is None


async def test_an_endpoint_that_answers_to_any_name_is_found_out(talk: Talk) -> None:
    class AnyName(HashEmbedder):
        def _vector(self, text: str) -> np.ndarray:
            return super()._vector(text[::-1] + "?")

    await tell(talk)
    await embed(talk, "old")
    await embed_in_part(talk, "new")
    for other in (AnyName(SIZES["old"], "old"), HashEmbedder(SIZES["new"], "old")):
        async with process(talk, None) as by_words, process(talk, embedder("new"), lambda *_: other) as process_of:  # noqa: B023 - used in this round alone
            assert await process_of.search("tea", method="hybrid") == await by_words.search("tea", method="hybrid")
            with pytest.raises(EmbeddingUnavailable):
                await process_of.search("tea", method="vector")
            progress = await process_of.engine.reindexing()
            assert progress is not None
            assert progress.searched_by == "words"


async def test_a_former_model_that_is_away_for_a_while_is_asked_again(talk: Talk) -> None:
    class Away(HashEmbedder):
        away = True

        async def passages(self, texts: Sequence[str]) -> np.ndarray:
            if self.away:
                raise EmbeddingUnavailable("away")
            return await super().passages(texts)

    await tell(talk)
    await embed(talk, "old")
    await embed_in_part(talk, "new")
    former = Away(SIZES["old"], "old")
    async with process(talk, embedder("new"), lambda *_: former) as other:
        assert await other.search("tea", method="hybrid") == await other.search("tea", method="hybrid")
        with pytest.raises(EmbeddingUnavailable):
            await other.search("tea", method="vector")
        former.away = False
        assert await asked(other) == await answers(talk, "old")


async def test_a_former_model_is_made_when_it_is_asked_and_closed_when_it_is_not(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Closed(HashEmbedder):
        closed = False

        async def close(self) -> None:
            self.closed = True

    made: list[Closed] = []

    def make_closed(model: str, dimensions: int) -> Embedder:
        made.append(Closed(dimensions, model))
        return made[-1]

    await tell(talk)
    await embed(talk, "old")
    await embed_in_part(talk, "new")
    async with process(talk, embedder("new"), make_closed) as other:
        await other.search("tea")
        assert made == [], "not for words"
        monkeypatch.setattr(meanings, "UNUSED_SECONDS", 0.05)
        await other.search("tea", method="vector")
        await other.search("boat", method="vector")
        assert len(made) == 1
        async with asyncio.timeout(10):
            while not made[0].closed:
                await asyncio.sleep(0.01)
        monkeypatch.undo()
        await other.search("tea", method="vector")
        assert [one.closed for one in made] == [True, False]
    assert [one.closed for one in made] == [True, True]


async def test_a_search_during_which_the_new_vectors_take_over_answers_by_them(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tell(talk)
    await embed(talk, "old")
    await embed_in_part(talk, "new")
    before = await answers(talk, "old")
    last = worker(talk, embedder("new"))
    opened: list[Any] = []

    async def note_that_it_was_opened(*arguments: Any) -> Any:
        opened.append(arguments)
        return await open_for(*arguments)

    of = meanings.Meanings.of

    async def finish_first(*arguments: Any) -> Any:
        assert opened
        await last.catch_up()
        return await of(*arguments)

    for knows in (False, True):
        async with process(talk, embedder("new")) as other:
            if knows:
                await other.search(QUERIES[0], method="vector")
            monkeypatch.setattr(engines, "open_for", note_that_it_was_opened)
            monkeypatch.setattr(meanings.Meanings, "of", finish_first)
            found = await other.search(QUERIES[0], method="vector")
            monkeypatch.undo()
            assert found == (await answers(talk, "new"))[1]
            assert found != before[1]
            await embed(talk, "old")
            await embed_in_part(talk, "new")


async def test_a_new_model_that_is_away_is_not_waited_for_again_and_again(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(HashEmbedder):
        async def query(self, text: str) -> np.ndarray:
            self.queries.append(text)
            raise EmbeddingUnavailable("away")

    await tell(talk)
    await embed(talk, "old")
    before = await answers(talk, "old")
    await embed_in_part(talk, "new")
    away = Slow(SIZES["new"], "new")
    async with process(talk, away) as other:
        assert (await other.search(QUERIES[0], method="hybrid")).episodes == before[2].episodes
        assert [await other.search(query, method="hybrid") for query in QUERIES] == before[2::4]
    assert len(away.queries) == 1


async def test_an_agents_cases_in_spaces_of_two_models_are_each_ranked_by_their_own(talk: Talk) -> None:
    for user in ("ann", "anna"):
        await talk.trajectory("repair the falcon", session=f"{user}:1", user=user)
    await embed(talk, "old")
    caller = Caller(user_id="ann", shared_agents=True)
    cases: dict[str, Any] = {"agent_id": "bot", "caller": caller, "method": "vector"}
    async with process(talk, embedder("old")) as fresh:
        old = await fresh.search("falcon repair", **cases)
    await embed_in_part(talk, "new", 1)
    models = "SELECT COUNT(DISTINCT COALESCE(former_model, embedding_model)) FROM engine_spaces"
    assert await talk.database.fetch(models) == [(2,)]
    mixed = await talk.search("falcon repair", **cases)
    await embed(talk, "new")
    new = await talk.search("falcon repair", **cases)
    scores = [{case["session_id"]: case["score"] for case in reply.agent_cases} for reply in (old, mixed, new)]
    assert scores[1] == {"ann:1": scores[2]["ann:1"], "anna:1": scores[0]["anna:1"]}


def test_vectors_in_the_form_of_an_older_version_are_not_searched_meanwhile() -> None:
    assert VectorSets("m1", 5, 0).begun_anew("m2") == VectorSets("m2", 0, 1)
    assert VectorSets(stored_model("m1", 8), 0, 3).begun_anew("m2") == VectorSets("m2", 0, 4)
