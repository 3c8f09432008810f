"""What the engine knows of an embedding model."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """Turns text into L2-normalised vectors; cosine similarity is the dot product.

    ``model`` names weights, version and quantisation: vectors of two different names cannot be compared, so a
    changed name means embedding again. ``dimensions`` is fixed for a name. Methods raise
    `memory_gateway.kit.errors.EmbeddingUnavailable`.
    """

    @property
    def model(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    async def passages(self, texts: Sequence[str]) -> Vectors:
        """Vectors of texts to be found, shape ``(len(texts), dimensions)``, in the order given."""
        ...

    async def query(self, text: str) -> Vectors:
        """The vector of a question, shape ``(dimensions,)``."""
        ...

    async def close(self) -> None:
        """Give back connections and memory. The embedder may not be used afterwards."""
        ...
