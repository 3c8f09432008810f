"""Text to vectors. `choose_embedder` reads the settings; everything else goes through `Embedder`."""

from memory_gateway.embeddings.choose import choose_embedder
from memory_gateway.embeddings.port import Embedder, Vectors

__all__ = ["Embedder", "Vectors", "choose_embedder"]
