"""How a model's cosines lie: measured once for each script, at first use."""

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


async def test_the_scale_is_the_mean_and_deviation_of_questions_and_texts_that_do_not_answer_them() -> None:
    embedder = HashEmbedder()
    scale = await CosineScales(embedder).of("Where is my umbrella?")
    texts = np.stack([embedder._vector(text) for text in embedder.embedded])
    cosines = np.stack([embedder._vector(question) for question in embedder.queries]) @ texts.T
    assert cosines.size >= 20
    assert (scale.unrelated, scale.spread) == pytest.approx((cosines.mean(), cosines.std()))


async def test_each_script_is_measured_once_by_its_own_texts() -> None:
    embedder = HashEmbedder()
    scales = CosineScales(embedder)
    latin = await scales.of("Where is my umbrella?")
    assert not any(is_han(text) for text in (*embedder.embedded, *embedder.queries))
    asked = len(embedder.queries)
    han = await scales.of("我的雨伞在哪里？")
    assert all(is_han(text) for text in (*embedder.embedded[6:], *embedder.queries[asked:]))
    assert han != latin
    calls = len(embedder.embedded), len(embedder.queries)
    assert await scales.of("Who is Ann?") == await scales.of("") == await scales.of("🙂") == latin
    assert await scales.of("Ann的雨伞") == await scales.of("傘はどこ") == await scales.of("우산") == han
    assert (len(embedder.embedded), len(embedder.queries)) == calls, "measured once"


async def test_a_model_that_was_away_is_asked_again() -> None:
    scales = CosineScales(AwayEmbedder())
    with pytest.raises(EmbeddingUnavailable):
        await scales.of("Where is my umbrella?")
    assert await scales.of("Where is my umbrella?") == await CosineScales(HashEmbedder()).of("Where?")


async def test_the_spread_is_never_nothing() -> None:
    scale = await CosineScales(FlatEmbedder()).of("Where?")
    assert (scale.unrelated, scale.spread) == pytest.approx((1.0, 0.001))
