"""The memory of question vectors."""

import numpy as np
import pytest

from memory_gateway.embeddings.cached import CachedQueries
from tests.fakes.embedder import HashEmbedder


async def test_a_question_asked_again_is_not_embedded_again() -> None:
    inner = HashEmbedder()
    cached = CachedQueries(inner)
    first, again = await cached.query("早报"), await cached.query("早报")
    assert inner.queries == ["早报"]
    assert again is first
    assert np.array_equal(first, await HashEmbedder().query("早报"))


async def test_the_question_not_asked_for_longest_is_forgotten() -> None:
    inner = HashEmbedder()
    cached = CachedQueries(inner, size=2)
    for question in ("a", "b", "a", "c", "a", "b"):
        await cached.query(question)
    assert inner.queries == ["a", "b", "c", "b"]


async def test_a_kept_vector_cannot_be_changed() -> None:
    vector = await CachedQueries(HashEmbedder()).query("a")
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 5


async def test_everything_else_is_the_inner_embedders() -> None:
    inner = HashEmbedder(dimensions=8, model="m1")
    cached = CachedQueries(inner)
    assert (cached.model, cached.dimensions) == ("m1", 8)
    assert (await cached.passages(["a", "b", "a"])).shape == (3, 8)
    assert inner.embedded == ["a", "b", "a"]


async def test_the_fake_is_unit_length_and_near_for_shared_words() -> None:
    inner = HashEmbedder()
    vectors = await inner.passages(["the door code is 4471", "my sister moved to Lisbon", "", "\ud800"])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1, 1], abs=1e-6)
    assert int(np.argmax(vectors @ await inner.query("door code"))) == 0
