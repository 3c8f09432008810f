"""Questions are asked again: one scope after the other, page by page. Their vectors are kept."""

from collections import OrderedDict
from collections.abc import Sequence

from memory_gateway.embeddings.port import Embedder, Vectors


class CachedQueries:
    """An embedder that remembers the vectors of its last ``size`` questions, read-only."""

    def __init__(self, embedder: Embedder, size: int = 512) -> None:
        self._embedder = embedder
        self._size = size
        self._known: OrderedDict[str, Vectors] = OrderedDict()

    @property
    def model(self) -> str:
        return self._embedder.model

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    async def passages(self, texts: Sequence[str]) -> Vectors:
        return await self._embedder.passages(texts)

    async def query(self, text: str) -> Vectors:
        if (vector := self._known.get(text)) is None:
            vector = await self._embedder.query(text)
            vector.flags.writeable = False
            self._known[text] = vector
        self._known.move_to_end(text)
        while len(self._known) > self._size:
            self._known.popitem(last=False)
        return vector

    async def close(self) -> None:
        self._known.clear()
        await self._embedder.close()
