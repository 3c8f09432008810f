"""The way to one server over HTTP/1.1: a request goes out, a whole answer comes back, or the way there failed.

A client of our own, over the parser that the gateway's own server uses: see docs/decisions/0010-own-http-client.md.
"""

import asyncio
import base64
import select
from collections import deque
from typing import Final, Protocol
from urllib.parse import quote, unquote, urlsplit

import httptools
from msgspec import Struct

_MOST_IDLE: Final = 20
_MOST_ANSWER_BYTES: Final = 64 << 20
_PATH_SAFE: Final = "/%!$&'()*+,;=:@~"


class Answer(Struct, frozen=True):
    """Whatever the server said, a refusal too."""

    status: int
    body: bytes


class Wire(Protocol):
    """Sends each request once. A call that is cancelled gives its connection up."""

    async def send(self, method: str, path: str, body: bytes | None = None) -> Answer:
        """``body`` is JSON. `ConnectionError` where no whole answer came, `TimeoutError` where nobody took the call.

        For how long an answer may take is the caller's to say.
        """
        ...

    async def close(self) -> None: ...


class HttpWire:
    """A `Wire` with a pool of connections to the server of ``base_url``, below whose path it sends.

    Redirects are not followed, and proxies of the environment not asked: the server is named in the settings, and
    mostly on this machine. ``idle_seconds`` is how long a connection may wait for its next request; 0: each request
    travels on one of its own. An answer must say where it ends: one that ends with its connection may have been cut.
    """

    def __init__(
        self, base_url: str, *, connect_seconds: float, idle_seconds: float, most_connections: int = 100
    ) -> None:
        url = urlsplit(base_url)
        if url.scheme not in {"http", "https"} or not url.hostname:
            raise ValueError(f"not an HTTP URL: {base_url}")
        self._tls = url.scheme == "https"
        self._host = url.hostname
        self._port = url.port or (443 if self._tls else 80)
        self._path = quote(url.path.rstrip("/"), safe=_PATH_SAFE)
        self._headers = _headers(url.netloc, keep=idle_seconds > 0)
        self._connect_seconds = connect_seconds
        self._idle_seconds = idle_seconds
        self._free = asyncio.Semaphore(most_connections)
        self._idle: deque[_Connection] = deque()
        self._closed = False

    async def send(self, method: str, path: str, body: bytes | None = None) -> Answer:
        head = f"{method} {self._path}{path} HTTP/1.1\r\n{self._headers}"
        if body is not None:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        async with self._free:
            connection = self._waiting() or await self._connected()
            try:
                answer = await connection.exchange(f"{head}\r\n".encode("ascii"), body or b"")
            except BaseException:  # a cancelled call, too, leaves an answer behind that is nobody's
                connection.abort()
                raise
            self._keep(connection)
        return answer

    async def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().abort()

    def _waiting(self) -> "_Connection | None":
        """The connection that was used last, if it has not waited for too long."""
        oldest = asyncio.get_running_loop().time() - self._idle_seconds
        while self._idle and self._idle[0].idle_since < oldest:
            self._idle.popleft().abort()
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable and connection.is_silent:
                return connection
            connection.abort()
        return None

    def _keep(self, connection: "_Connection") -> None:
        if not connection.is_usable or self._closed or self._idle_seconds == 0 or len(self._idle) >= _MOST_IDLE:
            connection.abort()
            return
        connection.idle_since = asyncio.get_running_loop().time()
        self._idle.append(connection)

    async def _connected(self) -> "_Connection":
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._connect_seconds):
                _, connection = await loop.create_connection(
                    _Connection, self._host, self._port, ssl=True if self._tls else None
                )
        except TimeoutError:  # an OSError, too
            raise
        except OSError as error:
            raise ConnectionError(f"cannot connect: {error}") from error
        return connection


class _Connection(asyncio.Protocol):
    """One request at a time. What the server says unasked ends the connection: the next answer might be another's."""

    def __init__(self) -> None:
        self.idle_since = 0.0
        self._transport: asyncio.Transport
        self._parser: httptools.HttpResponseParser
        self._answer: asyncio.Future[Answer] | None = None
        self._pieces: list[bytes] = []
        self._size = 0
        self._in_order = True

    @property
    def is_usable(self) -> bool:
        """Its answer was whole, and so was the request that the server read before it answered."""
        return self._in_order and not self._transport.is_closing() and not self._transport.get_write_buffer_size()

    @property
    def is_silent(self) -> bool:
        """Nothing has come, an end neither, that the event loop has not yet told of."""
        said = select.poll()
        said.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return not said.poll(0)

    async def exchange(self, head: bytes, body: bytes) -> Answer:
        self._parser = httptools.HttpResponseParser(self)
        self._pieces, self._size = [], 0
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.writelines((head, body))
        return await self._answer

    def abort(self) -> None:
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # of TCP; uvloop's is no subclass of asyncio's

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._answer.done():
            self._in_order = False
            self.abort()
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._in_order = False
            self._fail(f"not HTTP: {error}")

    def on_message_begin(self) -> None:
        if self._answer is not None and self._answer.done():
            self._in_order = False

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)
        self._size += len(body)
        if self._size > _MOST_ANSWER_BYTES:
            self._in_order = False
            self._fail("the answer is too large")
            self.abort()

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200 or self._answer is None or self._answer.done():  # "continue", before the answer
            return
        self._in_order = self._parser.should_keep_alive()
        self._answer.set_result(Answer(status, b"".join(self._pieces)))

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(f"the connection was lost: {exc}" if exc else "the connection was closed before the answer's end")

    def _fail(self, reason: str) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError(reason))


def _headers(netloc: str, *, keep: bool) -> str:
    credentials, _, host = netloc.rpartition("@")
    lines = [f"Host: {host.encode('idna').decode() if not host.isascii() else host}", "User-Agent: memory-gateway"]
    if credentials:
        name, _, password = credentials.partition(":")
        code = base64.b64encode(f"{unquote(name)}:{unquote(password)}".encode()).decode()
        lines.append(f"Authorization: Basic {code}")
    if not keep:
        lines.append("Connection: close")
    return "".join(f"{line}\r\n" for line in lines)
