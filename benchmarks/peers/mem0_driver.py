"""mem0 with ``infer`` off, so without a language model: Qdrant in this process, vectors from the server of the run.

Its keyword channel needs a list of English stop words that it fetches from a model hub; offline it goes without the
channel. With ``keywords`` the driver hands it an encoder of the same class with the list of the request.
"""

from collections.abc import Sequence
from pathlib import Path

from fastembed import SparseTextEmbedding
from mem0 import Memory

from benchmarks.peers.driving import MODEL, Request, drive

USER = "reader"


class Mem0Store:
    def __init__(self, request: Request, number: int) -> None:
        folder = Path(request["folder"], str(number))
        self._memory = Memory.from_config(_config(request, folder))
        self._memory.vector_store._bm25_encoder = _encoder(request, folder)
        self._turns: dict[str, int] = {}

    def add(self, turns: Sequence[str]) -> None:
        for number, turn in enumerate(turns):
            added = self._memory.add([{"role": "user", "content": turn}], user_id=USER, infer=False)
            self._turns[added["results"][0]["id"]] = number

    def search(self, question: str, most: int) -> list[int]:
        found = self._memory.search(question, top_k=most, filters={"user_id": USER})
        return [self._turns[memory["id"]] for memory in found["results"]]


def _config(request: Request, folder: Path) -> dict[str, object]:
    server = {"api_key": "none", "openai_base_url": request["embeddings_url"]}
    place = {"path": str(folder), "embedding_model_dims": request["dimensions"]}
    return {
        "llm": {"provider": "openai", "config": server},  # made at start, never asked
        "embedder": {"provider": "openai", "config": {"model": MODEL, **server}},
        "vector_store": {"provider": "qdrant", "config": place},
        "history_db_path": ":memory:",
    }


def _encoder(request: Request, folder: Path) -> SparseTextEmbedding | bool:
    """False is mem0's own mark for an encoder that could not be loaded."""
    if not request["keywords"]:
        return False
    return SparseTextEmbedding("Qdrant/bm25", specific_model_path=str(folder), stopwords=set(request["stop_words"]))


if __name__ == "__main__":
    drive(Mem0Store)
