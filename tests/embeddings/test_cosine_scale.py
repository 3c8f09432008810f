"""How a model's cosines lie: measured once for each script, at first use."""

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest

from memory_gateway.embeddings.cosine_scale import CosineScales
from memory_gateway.embeddings.port import Vectors
from memory_gateway.kit.errors import EmbeddingUnavailable
from tests.fakes.embedder import HashEmbedder


class FlatEmbedder(HashEmbedder):
    """Takes all texts for the same."""

    def _vector(self, text: str) -> Vectors:
        return np.array([0.6, 0.8], np.float32)


class AwayEmbedder(HashEmbedder):
    """Fails the first time it is given texts."""

    failures = 1

    async def passages(self, texts: Sequence[str]) -> Vectors:
        if self.failures:
            self.failures -= 1
            raise EmbeddingUnavailable("away")
        return await super().passages(texts)


def is_han(text: str) -> bool:
    return any("\u3400" <= character <= "\u9fff" for character in text)


def measured_on(embedder: HashEmbedder, *, han: bool) -> tuple[float, float]:
    """Mean and deviation of the cosines between the texts and the questions of one script."""
    texts = np.stack([embedder._vector(text) for text in embedder.embedded if is_han(text) == han])
    questions = np.stack([embedder._vector(question) for question in embedder.queries if is_han(question) == han])
    cosines = questions @ texts.T
    assert cosines.size >= 20
    return float(cosines.mean()), float(cosines.std())


async def test_each_script_has_the_scale_of_its_own_questions_and_texts_measured_once() -> None:
    embedder = HashEmbedder()
    scales = CosineScales(embedder)
    latin, han = await scales.of("Where is my umbrella?"), await scales.of("我的雨伞在哪里？")
    assert (latin.unrelated, latin.spread) == pytest.approx(measured_on(embedder, han=False))
    assert (han.unrelated, han.spread) == pytest.approx(measured_on(embedder, han=True))
    calls = len(embedder.embedded), len(embedder.queries)
    assert await scales.of("Who is Ann?") == await scales.of("") == await scales.of("🙂") == latin
    assert await scales.of("Ann的雨伞") == await scales.of("傘はどこ") == await scales.of("우산") == han
    assert (len(embedder.embedded), len(embedder.queries)) == calls


async def test_those_who_ask_at_once_share_one_measurement() -> None:
    embedder = HashEmbedder()
    scales = CosineScales(embedder)
    await asyncio.gather(*(scales.of("Where?") for _ in range(20)), scales.measure())
    once = HashEmbedder()
    await CosineScales(once).measure()
    assert embedder.queries == once.queries


async def test_a_model_that_was_away_is_asked_again() -> None:
    scales = CosineScales(AwayEmbedder())
    with pytest.raises(EmbeddingUnavailable):
        await scales.of("Where is my umbrella?")
    assert await scales.of("Where is my umbrella?") == await CosineScales(HashEmbedder()).of("Where?")


async def test_the_spread_is_never_nothing() -> None:
    scale = await CosineScales(FlatEmbedder()).of("Where?")
    assert (scale.unrelated, scale.spread) == pytest.approx((1.0, 0.001))
