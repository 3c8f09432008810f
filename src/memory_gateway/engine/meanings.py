"""Questions as vectors, by whichever model the vectors of a space are of: this process's own, or another's."""

import asyncio
import logging
from collections.abc import Callable

import numpy as np

from memory_gateway.embeddings.cosine_scale import CosineScales
from memory_gateway.embeddings.port import Embedder
from memory_gateway.engine.held_vectors import as_bytes, named_model, stored_model
from memory_gateway.engine.ranking import Meaning
from memory_gateway.engine.vectors import Sample, sample_of
from memory_gateway.kit.errors import EmbeddingUnavailable
from memory_gateway.storage.port import Database

UNUSED_SECONDS = 300.0
_LEAST_COSINE = 0.98  # of one text's vectors by the same model, made at two times and stored as bytes

MakeEmbedder = Callable[[str, int], Embedder | None]
"""Of a model's name and dimensions; None where such a model cannot be asked."""

_logger = logging.getLogger(__name__)


def make_none(_model: str, _dimensions: int) -> None:
    """No other model than the own one."""


class MovedOn(Exception):
    """The space is searched by another model since it was looked at."""


class Meanings:
    """Models other than the own are made when a question needs them, and closed when none has for five minutes."""

    def __init__(self, database: Database, embedder: Embedder, make_embedder: MakeEmbedder) -> None:
        self.scales = CosineScales(embedder)
        self._database = database
        self._embedder = embedder
        self._make_embedder = make_embedder
        self._others: dict[str, _OtherModel] = {}
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def own_model(self) -> str | None:
        """As spaces remember it; None until its dimensions are known."""
        return stored_model(self._embedder.model, self._embedder.dimensions) if self._embedder.dimensions else None

    async def of(self, text: str, model: str | None, space_no: int) -> Meaning:
        """By this model, which the space is searched by; None for the own. Raises `EmbeddingUnavailable`, `MovedOn`."""
        if model is None or self._may_be_own(model):
            vector = await self._embedder.query(text)
            own = stored_model(self._embedder.model, len(vector))
            if model in {None, own}:
                return Meaning(vector, own, await self.scales.of(text))
        other = self._other(model)
        other.let_go_later(self._let_go_of)
        return await other.meaning(text, space_no)

    def can_ask(self, model: str) -> bool:
        """Whether this process has such a model, as far as it has found out."""
        return self._may_be_own(model) or self._other(model).is_known

    async def close(self) -> None:
        """All but the own model, which belongs to whoever made it."""
        for model in list(self._others):
            self._let_go_of(model)
        await asyncio.gather(*self._closing)

    def _may_be_own(self, model: str) -> bool:
        named = named_model(model)
        own = self._embedder
        return named is not None and named.name == own.model and own.dimensions in {0, named.dimensions}

    def _other(self, model: str) -> "_OtherModel":
        if model not in self._others:
            named = named_model(model)
            embedder = None if named is None else self._make_embedder(named.name, named.dimensions)
            self._others[model] = _OtherModel(self._database, model, embedder)
            self._others[model].let_go_later(self._let_go_of)
        return self._others[model]

    def _let_go_of(self, model: str) -> None:
        if (other := self._others.pop(model, None)) is not None:
            closing = asyncio.create_task(other.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)


class _OtherModel:
    """A model that stored vectors are of. ``is_known`` is False where it cannot be had, or turned out to be another."""

    def __init__(self, database: Database, model: str, embedder: Embedder | None) -> None:
        self.is_known = embedder is not None
        self._database = database
        self._model = model
        self._embedder = embedder
        self._scales = CosineScales(embedder) if embedder is not None else None
        self._checking: asyncio.Task[bool] | None = None
        self._unused: asyncio.TimerHandle | None = None

    async def meaning(self, text: str, space_no: int) -> Meaning:
        if (
            self._embedder is None
            or self._scales is None
            or not await self._is_the_one(self._embedder, self._scales, space_no)
        ):
            raise EmbeddingUnavailable("the model that the memory's vectors are of cannot be asked; new ones are made")
        return Meaning(await self._embedder.query(text), self._model, await self._scales.of(text))

    def let_go_later(self, let_go_of: Callable[[str], None]) -> None:
        if self._unused is not None:
            self._unused.cancel()
        self._unused = asyncio.get_running_loop().call_later(UNUSED_SECONDS, let_go_of, self._model)

    async def close(self) -> None:
        if self._unused is not None:
            self._unused.cancel()
        if self._checking is not None:
            self._checking.cancel()
            await asyncio.wait([self._checking])
        if self._embedder is not None:
            await self._embedder.close()

    async def _is_the_one(self, embedder: Embedder, scales: CosineScales, space_no: int) -> bool:
        """Found out once, by a task of its own: whoever asks may have no time to wait for a model that is loading."""
        if self._checking is None or (self._checking.done() and self.is_known and not self._checking.result()):
            sample = await self._database.read(lambda transaction: sample_of(transaction, space_no, self._model))
            if sample is None:
                raise MovedOn
            self._checking = asyncio.create_task(self._check(embedder, scales, sample))
        return await asyncio.shield(self._checking)

    async def _check(self, embedder: Embedder, scales: CosineScales, sample: Sample) -> bool:
        try:
            self.is_known = await _makes(embedder, sample)
            if self.is_known:
                await scales.measure()
        except EmbeddingUnavailable as error:
            _logger.warning("the former embedding model cannot be asked: %s", error.message)
            return False
        if not self.is_known:
            _logger.warning("the embedding endpoint answers to the former model's name with another model's vectors")
        return self.is_known


async def _makes(embedder: Embedder, sample: Sample) -> bool:
    """Whether the model gives the text the vector that is stored."""
    (made,) = as_bytes(await embedder.passages([sample.text])).astype(np.float64)
    stored = sample.vector.astype(np.float64)
    if made.shape != stored.shape:
        return False
    lengths = float(np.linalg.norm(made) * np.linalg.norm(stored))
    return float(made @ stored) >= _LEAST_COSINE * lengths
