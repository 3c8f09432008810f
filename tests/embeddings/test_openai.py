"""Embeddings from an OpenAI-compatible server, played by a transport."""

import base64
import json
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest

from memory_gateway.embeddings.openai import OpenAIEmbedder
from memory_gateway.kit.errors import EmbeddingUnavailable

Answer = Callable[[httpx.Request], httpx.Response]


class Server:
    """Answers with ``answers`` in turn, the last one again and again, and keeps what it was asked."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []
        self.pauses: list[float] = []

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(request.content) for request in self.requests]

    def embedder(self, **options: Any) -> OpenAIEmbedder:
        async def pause(seconds: float) -> None:
            self.pauses.append(seconds)

        def answer(request: httpx.Request) -> httpx.Response:
            self.requests.append(request)
            return (self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])(request)

        given = {"url": "http://127.0.0.1:9/v1", "model": "small", "transport": httpx.MockTransport(answer), **options}
        return OpenAIEmbedder(pause=pause, **given)


def lengths(request: httpx.Request) -> httpx.Response:
    """For each text the vector (its length, 1), in reverse order but with indexes."""
    texts = json.loads(request.content)["input"]
    items = [{"index": index, "embedding": [len(text), 1]} for index, text in enumerate(texts)]
    return httpx.Response(200, json={"data": items[::-1]})


def status(code: int, **headers: str) -> Answer:
    secret = {"error": {"message": "key sk-123 of tenant acme is wrong"}}
    return lambda request: httpx.Response(code, json=secret, headers=headers)


def says(body: Any) -> Answer:
    return lambda request: httpx.Response(200, content=json.dumps(body))


def drops(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("connection to 10.1.2.3 refused", request=request)


async def test_asks_as_openai_does_and_normalises() -> None:
    server = Server(lengths)
    async with server.embedder(key="sk-1", url="http://127.0.0.1:9/v1/") as embedder:
        vectors = await embedder.passages(["abc", "0123456789ab", ""])
    assert str(server.requests[0].url) == "http://127.0.0.1:9/v1/embeddings"
    assert server.requests[0].headers["Authorization"] == "Bearer sk-1"
    assert server.bodies == [{"model": "small", "input": ["abc", "0123456789ab", " "]}]
    assert vectors.dtype == np.dtype("float32")
    assert np.allclose(vectors, [[3 / 10**0.5, 1 / 10**0.5], [12 / 145**0.5, 1 / 145**0.5], [1 / 2**0.5, 1 / 2**0.5]])


async def test_sends_no_key_where_there_is_none() -> None:
    server = Server(lengths)
    async with server.embedder() as embedder:
        assert np.allclose(await embedder.query("ab"), [2 / 5**0.5, 1 / 5**0.5])
    assert "Authorization" not in server.requests[0].headers


async def test_texts_go_in_batches_of_64() -> None:
    server = Server(lengths)
    async with server.embedder() as embedder:
        vectors = await embedder.passages(["x" * (number + 1) for number in range(130)])
        assert (await embedder.passages([])).shape == (0, 2)
    assert [len(body["input"]) for body in server.bodies] == [64, 64, 2]
    assert np.allclose(vectors[:, 0] / vectors[:, 1], range(1, 131), rtol=1e-4)


async def test_nul_and_lone_surrogates_are_not_sent() -> None:
    server = Server(lengths)
    async with server.embedder() as embedder:
        await embedder.query("a\0b\ud800c")
    assert server.bodies[0]["input"] == ["a b?c"]


async def test_dimensions_are_learnt_or_asked_for_and_part_of_the_name() -> None:
    server = Server(lengths)
    async with server.embedder() as learnt, server.embedder(dimensions=2) as asked:
        assert (learnt.dimensions, learnt.model) == (0, "small")
        await learnt.query("a")
        assert learnt.dimensions == 2
        assert (asked.dimensions, asked.model) == (2, "small@2")
        await asked.query("a")
    assert server.bodies[1] == {"model": "small", "input": ["a"], "dimensions": 2}


async def test_base64_vectors_are_read() -> None:
    encoded = base64.b64encode(np.array([3, 4], "<f4").tobytes()).decode()
    async with Server(says({"data": [{"embedding": encoded}]})).embedder() as embedder:
        assert np.allclose(await embedder.query("a"), [0.6, 0.8])


@pytest.mark.parametrize("fault", [drops, status(429), status(500), status(503)])
async def test_passing_faults_are_tried_again(fault: Answer) -> None:
    server = Server(fault, fault, lengths)
    async with server.embedder() as embedder:
        await embedder.query("a")
    assert len(server.requests) == 3
    assert server.pauses == [0.5, 1.0]


async def test_retry_after_is_respected_within_reason() -> None:
    server = Server(status(429, **{"Retry-After": "3"}), status(429, **{"Retry-After": "3600"}), lengths)
    async with server.embedder() as embedder:
        await embedder.query("a")
    assert server.pauses == [3.0, 10.0]


@pytest.mark.parametrize("fault", [drops, status(503)])
async def test_faults_that_stay_end_after_three_tries(fault: Answer) -> None:
    server = Server(fault)
    async with server.embedder() as embedder:
        with pytest.raises(EmbeddingUnavailable) as caught:
            await embedder.query("a")
    assert len(server.requests) == 3
    assert caught.value.message == "the embedding server cannot be reached or is overloaded"


@pytest.mark.parametrize("code", [301, 400, 401, 404])
async def test_a_refusal_is_not_tried_again_and_quotes_nothing(code: int) -> None:
    server = Server(status(code))
    async with server.embedder() as embedder:
        with pytest.raises(EmbeddingUnavailable) as caught:
            await embedder.query("a")
    assert len(server.requests) == 1
    assert caught.value.message == f"the embedding server refused the request with status {code}"


async def test_a_slow_server_is_not_asked_twice() -> None:
    def slow(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("", request=request)

    server = Server(slow)
    async with server.embedder() as embedder:
        with pytest.raises(EmbeddingUnavailable, match="did not answer in time"):
            await embedder.query("a")
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"data": []}, "sent 0 vectors for 1 texts"),
        ({"data": [{"embedding": [1]}, {"embedding": [1]}]}, "sent 2 vectors for 1 texts"),
        ({"data": [{"embedding": [0, 0]}]}, "a vector without a direction"),
        ({"data": [{"embedding": "no base64"}]}, "cannot be read"),
        ({"data": [{"embedding": ["a"]}]}, "cannot be read"),
        ({"vectors": []}, "cannot be read"),
        ("<html>", "cannot be read"),
    ],
)
async def test_a_reply_that_is_no_answer_is_refused(body: Any, message: str) -> None:
    async with Server(says(body)).embedder() as embedder:
        with pytest.raises(EmbeddingUnavailable, match=message):
            await embedder.query("a")


async def test_a_changed_or_wrong_dimension_is_refused() -> None:
    three = says({"data": [{"embedding": [1, 2, 3]}]})
    server = Server(lengths, three)
    async with server.embedder() as embedder:
        await embedder.query("a")
        with pytest.raises(EmbeddingUnavailable, match="3 dimensions instead of 2"):
            await embedder.query("b")
    async with Server(three).embedder(dimensions=4) as embedder:
        with pytest.raises(EmbeddingUnavailable, match="3 dimensions instead of 4"):
            await embedder.query("a")


async def test_vectors_of_unequal_length_are_refused() -> None:
    body = {"data": [{"embedding": [1, 2]}, {"embedding": [1, 2, 3]}]}
    async with Server(says(body)).embedder() as embedder:
        with pytest.raises(EmbeddingUnavailable, match="cannot be read"):
            await embedder.passages(["a", "b"])
