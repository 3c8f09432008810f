"""The local embedder: an ONNX model in this process, on one thread of its own."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from memory_gateway.embeddings.port import Vectors
from memory_gateway.kit.errors import EmbeddingUnavailable

if TYPE_CHECKING:
    from memory_gateway.embeddings.onnx_model import OnnxModel

_SECONDS_BETWEEN_LOADS = 60.0
_LOG = logging.getLogger(__name__)


class LocalEmbedder:
    """``folder`` gives the ready model folder, building it if need be; it is called at first use, on the thread.

    The thread runs one text at a time and texts take turns, so a question waits for a few milliseconds, not for the
    batch that is being indexed. A model that cannot be loaded is tried again after a minute, not at every call.
    """

    def __init__(self, folder: Callable[[], Path], *, model: str, dimensions: int) -> None:
        self.model = model
        self.dimensions = dimensions
        self._folder = folder
        self._loaded: OnnxModel | None = None
        self._not_before = 0.0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="embedder")

    async def passages(self, texts: Sequence[str]) -> Vectors:
        vectors = np.empty((len(texts), self.dimensions), np.float32)
        for index, text in enumerate(texts):
            vectors[index] = await self._on_thread(self._passage, text)
        return vectors

    async def query(self, text: str) -> Vectors:
        return await self._on_thread(self._query, text)

    async def close(self) -> None:
        await asyncio.to_thread(self._thread.shutdown)
        self._loaded = None

    async def _on_thread(self, work: Callable[[str], Vectors], text: str) -> Vectors:
        try:
            running = self._thread.submit(work, text)
        except RuntimeError as error:
            raise EmbeddingUnavailable("the embedder is closed") from error
        return await asyncio.wrap_future(running)

    def _passage(self, text: str) -> Vectors:
        return self._ready().passage(text)

    def _query(self, text: str) -> Vectors:
        return self._ready().query(text)

    def _ready(self) -> "OnnxModel":
        if self._loaded is None:
            if time.monotonic() < self._not_before:
                raise EmbeddingUnavailable("the local embedding model could not be loaded")
            self._not_before = time.monotonic() + _SECONDS_BETWEEN_LOADS
            self._loaded = _load(self._folder)
        return self._loaded


def _load(folder: Callable[[], Path]) -> "OnnxModel":
    try:
        from memory_gateway.embeddings.onnx_model import OnnxModel  # noqa: PLC0415 - onnxruntime loads at first use

        return OnnxModel(folder())
    except EmbeddingUnavailable:
        raise
    except Exception as error:
        _LOG.warning("the local embedding model could not be loaded", exc_info=error)
        raise EmbeddingUnavailable("the local embedding model could not be loaded") from error
