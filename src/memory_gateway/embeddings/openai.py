"""Any server that speaks OpenAI's ``POST /embeddings``: vLLM, Ollama, llama.cpp, LiteLLM, OpenAI itself."""

import asyncio
import base64
import logging
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Self

import httpx
import msgspec
import numpy as np

from memory_gateway.embeddings.port import Vectors
from memory_gateway.kit.errors import EmbeddingUnavailable

BATCH = 64
TRIES = 3
MOST_REPLY_SECONDS = 60.0
_LONGEST_PAUSE = 10.0
_LOG = logging.getLogger(__name__)


class _Item(msgspec.Struct, frozen=True):
    embedding: list[float] | str
    index: int | None = None


class _Reply(msgspec.Struct, frozen=True):
    data: list[_Item]


class OpenAIEmbedder:
    """``url`` is the API's base, such as ``http://127.0.0.1:11434/v1``.

    ``dimensions`` is asked of the server where it is set; else it is learnt from the first reply and 0 until then.
    Connection faults, 429 and 5xx are tried again, three times in all; everything else fails at once.
    """

    def __init__(
        self,
        *,
        url: str,
        model: str,
        key: str | None = None,
        dimensions: int | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.model = f"{model}@{dimensions}" if dimensions else model
        self.dimensions = dimensions or 0
        self._name = model
        self._asked_dimensions = dimensions
        self._pause = pause
        self._url = url.rstrip("/").removesuffix("/embeddings") + "/embeddings"
        self._client = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx.Timeout(MOST_REPLY_SECONDS, connect=10.0),
            limits=httpx.Limits(max_connections=8),
            transport=transport,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def passages(self, texts: Sequence[str]) -> Vectors:
        batches = [await self._embed(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)]
        return np.concatenate(batches) if batches else np.zeros((0, self.dimensions), np.float32)

    async def query(self, text: str) -> Vectors:
        vector: Vectors = (await self._embed([text]))[0]
        return vector

    async def close(self) -> None:
        await self._client.aclose()

    async def _embed(self, texts: Sequence[str]) -> Vectors:
        body: dict[str, object] = {"model": self._name, "input": [_clean(text) for text in texts]}
        if self._asked_dimensions:
            body["dimensions"] = self._asked_dimensions
        vectors = _normalised(_vectors(await self._post(body), len(texts)))
        self.dimensions = self.dimensions or vectors.shape[1]
        if vectors.shape[1] != self.dimensions:
            raise EmbeddingUnavailable(
                f"the embedding server sent {vectors.shape[1]} dimensions instead of {self.dimensions}"
            )
        return vectors

    async def _post(self, body: dict[str, object]) -> bytes:
        for tried in range(1, TRIES + 1):
            reply = await self._try(body)
            if isinstance(reply, httpx.Response) and not _is_transient(reply):
                return _content(reply)
            if tried < TRIES:
                await self._pause(_seconds(reply, tried))
        raise EmbeddingUnavailable("the embedding server cannot be reached or is overloaded")

    async def _try(self, body: dict[str, object]) -> httpx.Response | None:
        """The reply, or None when there was none."""
        try:
            return await self._client.post(self._url, json=body)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.RemoteProtocolError, httpx.ReadError) as error:
            _LOG.info("embedding server: %s", type(error).__name__)
            return None
        except httpx.HTTPError as error:
            raise EmbeddingUnavailable("the embedding server did not answer in time") from error


def _is_transient(reply: httpx.Response) -> bool:
    return reply.status_code == httpx.codes.TOO_MANY_REQUESTS or reply.is_server_error


def _content(reply: httpx.Response) -> bytes:
    if not reply.is_success:
        _LOG.warning("embedding server: status %s", reply.status_code)
        raise EmbeddingUnavailable(f"the embedding server refused the request with status {reply.status_code}")
    return reply.content


def _seconds(reply: httpx.Response | None, tried: int) -> float:
    """What Retry-After asks for, within reason; else half a second, doubled at each try."""
    asked = reply.headers.get("Retry-After", "") if reply is not None else ""
    return min(float(asked) if asked.isdecimal() else 0.25 * 2**tried, _LONGEST_PAUSE)


def _vectors(content: bytes, expected: int) -> Vectors:
    try:
        items = msgspec.json.decode(content, type=_Reply).data
        ordered = sorted(enumerate(items), key=lambda pair: pair[0] if pair[1].index is None else pair[1].index)
        rows = [_numbers(item.embedding) for _, item in ordered]
        vectors: Vectors = np.stack(rows) if rows else np.zeros((0, 0), np.float32)
    except (msgspec.MsgspecError, ValueError) as error:
        raise EmbeddingUnavailable("the embedding server's reply cannot be read") from error
    if len(vectors) != expected:
        raise EmbeddingUnavailable(f"the embedding server sent {len(vectors)} vectors for {expected} texts")
    return vectors


def _numbers(embedding: list[float] | str) -> Vectors:
    """A list of numbers, or base64 of little-endian float32 (some servers send it unasked)."""
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), "<f4")
    return np.array(embedding, np.float32)


def _normalised(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.all(np.isfinite(lengths)) or np.any(lengths == 0):
        raise EmbeddingUnavailable("the embedding server sent a vector without a direction")
    normalised: Vectors = (vectors / lengths).astype(np.float32)
    return normalised


def _clean(text: str) -> str:
    """No NUL, no lone surrogate, and never empty: servers refuse these."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode() or " "
