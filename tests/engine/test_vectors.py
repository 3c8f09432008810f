"""Vectors follow in the background: nothing is lost, nothing is made twice, a new model starts anew."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from memory_gateway.embeddings.cosine_scale import CosineScales
from memory_gateway.engine.held_vectors import stored_model
from memory_gateway.engine.vectors import VectorWorker, next_backlog
from memory_gateway.kit.errors import EmbeddingUnavailable
from memory_gateway.storage.leases import Leases
from tests.engine.conftest import Talk, open_talk
from tests.fakes.embedder import HashEmbedder


class CountingEmbedder(HashEmbedder):
    """Counts the texts it was given, and fails when told to."""

    failing = False

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    async def passages(self, texts: Sequence[str]) -> np.ndarray:
        if self.failing:
            raise EmbeddingUnavailable("away")
        self.texts.extend(texts)
        return await super().passages(texts)

    async def query(self, text: str) -> np.ndarray:
        if self.failing:
            raise EmbeddingUnavailable("away")
        return await super().query(text)


def worker(talk: Talk, embedder: HashEmbedder, holder: str = "w") -> VectorWorker:
    leases = Leases(talk.database, talk.clock, holder)
    return VectorWorker(talk.database, embedder, leases, CosineScales(embedder))


async def test_the_backlog_counts_down_to_nothing_and_each_turn_is_embedded_once(tmp_path: Path) -> None:
    embedder = CountingEmbedder()
    async with open_talk(tmp_path, embedder) as talk:
        await talk.say(*(f"line {number}" for number in range(40)))
        await talk.say("other space", user="anna")
        assert await talk.engine.backlog() == 41
        assert await worker(talk, embedder).catch_up() == 41
        assert await talk.engine.backlog() == 0
        assert await worker(talk, embedder).catch_up() == 0
        assert len(embedder.texts) == 41
        assert "ann: line 0\nann: line 1" in embedder.texts, "a window of two turns"


async def test_nobody_waits_for_the_vectors_of_anothers_book(tmp_path: Path) -> None:
    embedder = CountingEmbedder()
    async with open_talk(tmp_path, embedder) as talk:
        await talk.say(*(f"page {number}" for number in range(200)))
        await talk.say("a short note", user="anna")
        await worker(talk, embedder).catch_up()
        assert embedder.texts[0] == "anna: a short note"


async def test_an_exact_word_without_a_vector_is_not_beaten_by_unrelated_text_that_has_one(tmp_path: Path) -> None:
    embedder = CountingEmbedder()
    async with open_talk(tmp_path, embedder) as talk:
        await talk.say("the weather is fine today", session="old")
        await worker(talk, embedder).catch_up()
        await talk.say("marzipan octopus arrives", session="new")
        assert (await talk.found("marzipan octopus", method="hybrid"))[0] == "ann: marzipan octopus arrives"


async def test_a_message_that_says_nothing_answers_nothing(tmp_path: Path) -> None:
    embedder = CountingEmbedder()
    async with open_talk(tmp_path, embedder) as talk:
        await talk.say("", session="empty")
        await talk.say("my favourite tea is oolong", session="tea")
        await worker(talk, embedder).catch_up()
        for method in ("vector", "hybrid"):
            assert await talk.found("favourite", method=method) == ["ann: my favourite tea is oolong"]


async def test_two_processes_do_not_double_the_work(tmp_path: Path) -> None:
    embedder = CountingEmbedder()
    async with open_talk(tmp_path, embedder) as talk:
        await talk.say(*(f"line {number}" for number in range(100)))
        done = await asyncio.gather(worker(talk, embedder, "a").catch_up(), worker(talk, embedder, "b").catch_up())
        assert sorted(done) == [0, 100]
        ((size,),) = await talk.database.fetch("SELECT SUM(LENGTH(vectors)) FROM engine_vectors")
        assert size == 100 * embedder.dimensions


async def test_a_restart_goes_on_where_the_last_run_stopped(tmp_path: Path) -> None:
    embedder = CountingEmbedder()
    async with open_talk(tmp_path, embedder) as talk:
        await talk.say(*(f"line {number}" for number in range(70)))
        first = worker(talk, embedder, "first")
        model = stored_model(embedder.model, embedder.dimensions)
        backlog = await talk.database.read(lambda transaction: next_backlog(transaction, model))
        assert backlog is not None
        await first._embed(backlog)
        assert await worker(talk, embedder, "second").catch_up() == 70 - 32
        assert len(embedder.texts) == len(set(embedder.texts)) == 70


async def test_text_is_found_by_keyword_before_its_vector_is_there(tmp_path: Path) -> None:
    async with open_talk(tmp_path, CountingEmbedder()) as talk:
        await talk.say("green tea")
        assert await talk.found("tea", method="hybrid") == ["ann: green tea"]
        assert await talk.found("green tea leaves", method="vector") == []


async def test_another_model_makes_all_vectors_anew(tmp_path: Path) -> None:
    async with open_talk(tmp_path, HashEmbedder(64)) as talk:
        await talk.say("green tea", "black tea")
        await worker(talk, HashEmbedder(64)).catch_up()
        assert await worker(talk, HashEmbedder(32, "another")).catch_up() == 2
        ((size,),) = await talk.database.fetch("SELECT SUM(LENGTH(vectors)) FROM engine_vectors")
        assert size == 2 * 32


async def test_vectors_of_another_model_are_not_compared_with_the_question(tmp_path: Path) -> None:
    async with open_talk(tmp_path, HashEmbedder(32, "new")) as talk:
        await talk.say("green tea")
        await worker(talk, HashEmbedder(64, "old")).catch_up()
        assert await talk.found("tea", method="hybrid") == ["ann: green tea"]
        with pytest.raises(EmbeddingUnavailable, match="the model that the memory's vectors are of cannot be asked"):
            await talk.search("leaves of tea", method="vector")


async def test_a_text_that_the_model_refuses_holds_up_its_own_space_only(tmp_path: Path) -> None:
    class PickyEmbedder(CountingEmbedder):
        async def passages(self, texts: Sequence[str]) -> np.ndarray:
            if any("poison" in text for text in texts):
                raise EmbeddingUnavailable("refused")
            return await super().passages(texts)

    embedder = PickyEmbedder()
    async with open_talk(tmp_path, embedder) as talk:
        await talk.say("poison")
        await talk.say("tea", "milk", user="anna")
        assert await worker(talk, embedder).catch_up() == 2
        assert await talk.engine.backlog() == 1
        with pytest.raises(EmbeddingUnavailable):
            await worker(talk, embedder).catch_up()


async def test_while_the_model_is_away_keywords_answer_and_vector_says_so(tmp_path: Path) -> None:
    embedder = CountingEmbedder()
    async with open_talk(tmp_path, embedder) as talk:
        await talk.say("green tea")
        embedder.failing = True
        talk.engine.start()
        talk.engine.wake()
        for _ in range(100):
            if not talk.engine.vectors_healthy:
                break
            await asyncio.sleep(0.02)
        assert not talk.engine.vectors_healthy
        assert await talk.found("tea", method="hybrid") == ["ann: green tea"]
        with pytest.raises(EmbeddingUnavailable):
            await talk.search("tea", method="vector")
        assert await talk.engine.backlog() == 1


async def test_who_is_back_is_healthy_before_a_long_backlog_is_done(tmp_path: Path) -> None:
    class Gated(CountingEmbedder):
        batches = 0
        held: asyncio.Event

        async def passages(self, texts: Sequence[str]) -> np.ndarray:
            vectors = await super().passages(texts)
            self.batches += 1
            if self.batches > 1:
                await self.held.wait()
            return vectors

    embedder = Gated()
    embedder.held = asyncio.Event()
    async with open_talk(tmp_path, embedder) as talk:
        await talk.say(*(f"line {number}" for number in range(70)))
        at_work = worker(talk, embedder)
        at_work._reachable = False  # as after a fault
        catching_up = asyncio.create_task(at_work.catch_up())
        async with asyncio.timeout(10):
            while embedder.batches < 2:
                await asyncio.sleep(0.01)
        assert at_work.healthy
        assert await talk.engine.backlog() == 70 - 32
        embedder.held.set()
        assert await catching_up == 70


async def test_a_model_that_is_still_loading_does_not_hold_up_a_hybrid_search(tmp_path: Path) -> None:
    class LoadingEmbedder(HashEmbedder):
        async def query(self, text: str) -> np.ndarray:
            await asyncio.sleep(3600)
            return await super().query(text)

    async with open_talk(tmp_path, LoadingEmbedder()) as talk:
        await talk.say("green tea")
        async with asyncio.timeout(30):
            assert await talk.found("tea", method="hybrid") == ["ann: green tea"]


async def test_the_running_engine_embeds_what_is_added(tmp_path: Path) -> None:
    async with open_talk(tmp_path, HashEmbedder()) as talk:
        talk.engine.start()
        await talk.say("green tea")
        for _ in range(200):
            if not await talk.engine.backlog():
                break
            await asyncio.sleep(0.02)
        assert await talk.engine.backlog() == 0
        assert await talk.found("tea green", method="vector") == ["ann: green tea"]
