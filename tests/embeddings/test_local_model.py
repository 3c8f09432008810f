"""The model that is built from the package's weights."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from memory_gateway.embeddings import local_model
from memory_gateway.embeddings.e5_weights import E5Weights, WeightsUnreadable
from memory_gateway.embeddings.model_card import CARD_FILE, GRAPH_FILE, TOKENIZER_FILE, read_card, write_card
from memory_gateway.kit.errors import EmbeddingUnavailable

pytestmark = pytest.mark.slow

CHECK = """
import sys, pathlib
from memory_gateway.embeddings import local_model
local_model.check(pathlib.Path(sys.argv[1]), tuple(sys.argv[2:]) or local_model.CHECK_SENTENCES)
print("near")
"""


def run_check(folder: Path, *sentences: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", CHECK, str(folder), *sentences]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_vectors_are_those_of_the_package_for_sentences_the_build_never_saw(model_folder: Path) -> None:
    done = run_check(
        model_folder,
        "Teo keeps the spare keys with the neighbour on the second floor.",
        "pip install failed: could not build wheels for numpy==2.1",
        "妈妈下周从成都来上海，记得订高铁票和酒店。",
        "设备放在C盘，每天早上先看早报 😀",
        "",
    )
    assert done.stdout == "near\n", done.stderr


def test_a_model_that_is_off_is_refused(model_folder: Path, tmp_path: Path) -> None:
    for file in (GRAPH_FILE, TOKENIZER_FILE):
        (tmp_path / file).symlink_to(model_folder / file)
    card = read_card(model_folder)
    write_card(tmp_path, msgspec.structs.replace(card, passage_prefix="", query_prefix=""))
    done = run_check(tmp_path)
    assert done.returncode != 0
    assert "the built model is off: cosine 0." in done.stderr


def test_two_processes_build_one_model_and_clear_what_a_crash_left(tmp_path: Path) -> None:
    models = tmp_path / "models"
    partial = models / f"{local_model.model_name()}.partial"
    partial.mkdir(parents=True)
    (partial / "half-written").write_bytes(b"junk")
    with ThreadPoolExecutor(2) as threads:
        folders = set(threads.map(local_model.ensure_built, [models, models]))
    assert folders == {models / local_model.model_name()}
    assert sorted(entry.name for entry in models.iterdir()) == [".lock", local_model.model_name()]
    files = sorted(entry.name for entry in folders.pop().iterdir())
    assert files == sorted([CARD_FILE, GRAPH_FILE, TOKENIZER_FILE])


def test_a_built_model_is_not_built_again(model_folder: Path) -> None:
    before = (model_folder / GRAPH_FILE).stat().st_mtime_ns
    started = time.monotonic()
    assert local_model.ensure_built(model_folder.parent) == model_folder
    assert time.monotonic() - started < 0.5
    assert (model_folder / GRAPH_FILE).stat().st_mtime_ns == before


def test_a_failed_build_says_so_without_a_path(tmp_path: Path) -> None:
    (tmp_path / "models").write_bytes(b"a file where the folder should be")
    with pytest.raises(EmbeddingUnavailable) as caught:
        local_model.ensure_built(tmp_path / "models")
    assert caught.value.message == "the local embedding model could not be built"
    assert caught.value.status == 503


def test_the_name_changes_with_the_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = tmp_path / "weights.bin"
    monkeypatch.setattr(local_model, "weights_file", lambda: weights)
    names = set()
    for content in (b"a" * 3_000_000, b"a" * 2_999_999 + b"b", b"a" * 3_000_001):
        weights.write_bytes(content)
        names.add(local_model.model_name())
    assert len(names) == 3


def test_the_card_names_the_model_by_its_folder(model_folder: Path) -> None:
    card = read_card(model_folder)
    assert (card.model, card.dimensions, card.max_tokens) == (model_folder.name, 384, 512)
    assert local_model.model_name() == card.model
    assert card.dimensions == local_model.DIMENSIONS


def test_another_file_is_no_weight_file(tmp_path: Path) -> None:
    path = tmp_path / "weights.bin"
    path.write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(WeightsUnreadable, match="no E5S1 weight file"):
        E5Weights(path)
