"""txtai's hybrid index at its defaults: BM25 and exact vectors, fused half and half; vectors from the run's server."""

from collections.abc import Sequence

from txtai import Embeddings

from benchmarks.peers.driving import Request, drive, embed


class TxtaiStore:
    def __init__(self, request: Request, _number: int) -> None:
        url = request["embeddings_url"]

        def transform(texts: Sequence[str]) -> list[list[float]]:
            return embed(url, texts)

        self._index = Embeddings(method="external", transform=transform, hybrid=True)

    def add(self, turns: Sequence[str]) -> None:
        self._index.index(enumerate(turns))

    def search(self, question: str, most: int) -> list[int]:
        return [number for number, _ in self._index.search(question, most)]


if __name__ == "__main__":
    drive(TxtaiStore)
