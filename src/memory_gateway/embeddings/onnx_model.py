"""A sentence encoder in a folder: ``model.onnx``, a SentencePiece tokenizer and a card.

Importing this module loads onnxruntime and sentencepiece, some 25 MB; a loaded model takes about 160 MB more.
"""

import os
import re
from pathlib import Path

import numpy as np
import sentencepiece

from memory_gateway.embeddings.model_card import GRAPH_FILE, TOKENIZER_FILE, ModelCard, read_card
from memory_gateway.embeddings.port import Vectors

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read at import: onnxruntime sends usage figures to its maker otherwise
import onnxruntime  # so not before the line above

_SPACES = re.compile(" {2,}")
_MOST_CHARACTERS_A_TOKEN = 32


class OnnxModel:
    """Blocking and for one thread at a time. One text a run, so that a vector never depends on other texts."""

    def __init__(self, folder: Path) -> None:
        self.card: ModelCard = read_card(folder)
        self._normalise = str.maketrans(self.card.normalise)
        self._tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(folder / TOKENIZER_FILE))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = False
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            str(folder / GRAPH_FILE), options, providers=["CPUExecutionProvider"]
        )

    def passage(self, text: str) -> Vectors:
        """The vector of a text to be found."""
        return self._vector(self.card.passage_prefix + text)

    def query(self, text: str) -> Vectors:
        """The vector of a question."""
        return self._vector(self.card.query_prefix + text)

    def tokens(self, text: str) -> list[int]:
        """Ids as the encoder takes them, cut to its limit. NUL counts as white space, a lone surrogate as ``?``."""
        room = self.card.max_tokens - 2
        clean = text[: room * _MOST_CHARACTERS_A_TOKEN].replace("\0", " ").encode("utf-8", "replace").decode()
        normal = _SPACES.sub(" ", clean.translate(self._normalise))
        pieces: list[int] = self._tokenizer.encode(normal)
        return [self.card.begin, *pieces[:room], self.card.end]

    def _vector(self, text: str) -> Vectors:
        ids = np.array([self.tokens(text)], np.int64)
        (vectors,) = self._session.run(["vector"], {"ids": ids})
        vector: Vectors = vectors[0]
        return vector
