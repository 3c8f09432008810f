"""An embedder without a model: texts that share character trigrams are near each other."""

import zlib
from collections.abc import Sequence

import numpy as np

from memory_gateway.embeddings.port import Vectors


class HashEmbedder:
    """Deterministic across runs and machines. Counts its calls, so that tests can see what was embedded."""

    def __init__(self, dimensions: int = 64, model: str = "hash-trigrams-1") -> None:
        self.model = model
        self.dimensions = dimensions
        self.embedded: list[str] = []
        self.queries: list[str] = []

    async def passages(self, texts: Sequence[str]) -> Vectors:
        self.embedded.extend(texts)
        if not texts:
            return np.zeros((0, self.dimensions), np.float32)
        return np.stack([self._vector(text) for text in texts])

    async def query(self, text: str) -> Vectors:
        self.queries.append(text)
        return self._vector(text)

    async def close(self) -> None:
        """Nothing to give back."""

    def _vector(self, text: str) -> Vectors:
        padded = f" {' '.join(text.casefold().split())} "
        vector = np.zeros(self.dimensions, np.float32)
        for size in (1, 2, 3):
            for start in range(len(padded) - size + 1):
                hashed = zlib.crc32(padded[start : start + size].encode("utf-8", "surrogatepass"))
                vector[hashed % self.dimensions] += 1.0 if hashed & 0x8000_0000 else -1.0
        length = np.linalg.norm(vector)
        return (vector / length if length else np.eye(1, self.dimensions, dtype=np.float32)[0]).astype(np.float32)
