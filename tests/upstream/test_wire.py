"""The gateway's own HTTP client, on real sockets: what it sends, what it takes for an answer, and what it gives up."""

import asyncio
import os
from collections.abc import Awaitable, Callable

import pytest

from memory_gateway.upstream import wire as wire_module
from memory_gateway.upstream.wire import Answer, HttpWire
from tests.upstream.conftest import Listen, Serve

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
Reply = Callable[[asyncio.StreamWriter], Awaitable[None] | None]


def wire(url: str, *, idle: float = 2.0, **options: int) -> HttpWire:
    return HttpWire(url, connect_seconds=2.0, idle_seconds=idle, **options)


async def request_of(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    _, found, length = head.lower().partition(b"content-length: ")
    return head + await reader.readexactly(int(length.split(b"\r\n")[0]) if found else 0)


class Server:
    """Answers every request with these bytes; ``closing`` after each of them."""

    def __init__(self, reply: bytes = OK, *, closing: bool = False) -> None:
        self.reply = reply
        self.closing = closing
        self.connections = 0
        self.requests: list[bytes] = []
        self.ended = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                self.requests.append(await request_of(reader))
                writer.write(self.reply)
                await writer.drain()
                if self.closing:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            self.ended.set()


async def test_a_request_is_sent_as_it_is_meant(listen: Listen) -> None:
    server = Server()
    url = await listen(server.serve)
    there = wire(f"{url}/a base/")
    assert await there.send("POST", "/api/v1/memory/add", b'{"a":1}') == Answer(200, b"{}")
    await there.send("GET", "/health")
    address = url.removeprefix("http://").encode()
    assert server.requests == [
        b"POST /a%20base/api/v1/memory/add HTTP/1.1\r\nHost: " + address + b"\r\nUser-Agent: memory-gateway\r\n"
        b'Content-Type: application/json\r\nContent-Length: 7\r\n\r\n{"a":1}',
        b"GET /a%20base/health HTTP/1.1\r\nHost: " + address + b"\r\nUser-Agent: memory-gateway\r\n\r\n",
    ]
    await there.close()


async def test_an_answer_without_end_is_given_up(listen: Listen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire_module, "_MOST_ANSWER_BYTES", 1_000)
    server = Server(b"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n" + b"x" * 1_001)
    there = wire(await listen(server.serve))
    with pytest.raises(ConnectionError, match="too large"):
        await there.send("GET", "/health")
    server.reply = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b"x" * 1_000
    for _ in range(2):
        assert (await there.send("GET", "/health")).body == b"x" * 1_000
    assert server.connections == 2
    await there.close()


async def test_the_credentials_of_the_url_are_sent(listen: Listen) -> None:
    server = Server()
    there = wire((await listen(server.serve)).replace("http://", "http://ann:p%40ss@"))
    await there.send("GET", "/health")
    assert b"\r\nAuthorization: Basic YW5uOnBAc3M=\r\n" in server.requests[0]
    assert b"ann" not in server.requests[0]
    await there.close()


@pytest.mark.parametrize("url", ["ftp://everos", "everos:8000", "http://", "//everos", "http://everos:port"])
def test_what_is_no_http_url_is_refused_at_once(url: str) -> None:
    with pytest.raises(ValueError):
        wire(url)


# What counts as an answer.


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (b"HTTP/1.1 204 No Content\r\n\r\n", Answer(204, b"")),
        (b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", Answer(302, b"")),
        (b"HTTP/1.1 500 Oops\r\nContent-Length: 3\r\n\r\nabc", Answer(500, b"abc")),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n1\r\n!\r\n0\r\n\r\n", Answer(200, b"{}!")),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, Answer(200, b"{}")),
    ],
)
async def test_a_whole_answer_comes_back_as_it_is(said: bytes, answer: Answer, listen: Listen) -> None:
    server = Server(said)
    there = wire(await listen(server.serve))
    assert await there.send("POST", "/x", b"{}") == answer
    assert await there.send("POST", "/x", b"{}") == answer
    assert (len(server.requests), server.connections) == (2, 1)
    await there.close()


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nuntil the end",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n" + OK,
    ],
)
async def test_anything_else_is_a_lost_connection(said: bytes, listen: Listen) -> None:
    server = Server(said, closing=True)
    there = wire(await listen(server.serve))
    with pytest.raises(ConnectionError):
        await there.send("POST", "/x", b"{}")
    assert len(server.requests) == 1
    await there.close()


async def test_nobody_there_is_a_lost_connection() -> None:
    with pytest.raises(ConnectionError, match="cannot connect"):
        await wire("http://127.0.0.1:1").send("GET", "/health")
    with pytest.raises(ConnectionError, match="cannot connect"):
        await wire("http://no.such.host.invalid").send("GET", "/health")


# Which connection a request travels on.


async def test_a_connection_serves_again(listen: Listen) -> None:
    server = Server()
    there = wire(await listen(server.serve))
    for _ in range(3):
        await there.send("POST", "/x", b"{}")
    assert (len(server.requests), server.connections) == (3, 1)
    await there.close()
    await asyncio.wait_for(server.ended.wait(), 2)


async def test_each_request_travels_alone_where_none_may_wait(listen: Listen) -> None:
    server = Server()
    there = wire(await listen(server.serve), idle=0)
    for _ in range(3):
        await there.send("POST", "/x", b"{}")
    server.ended.clear()
    await there.send("POST", "/x", b"{}")
    assert server.connections == 4
    assert all(b"\r\nConnection: close\r\n" in request for request in server.requests)
    await asyncio.wait_for(server.ended.wait(), 2)


async def test_a_connection_that_has_waited_too_long_is_given_up(listen: Listen) -> None:
    server = Server()
    there = wire(await listen(server.serve), idle=0.05)
    await there.send("POST", "/x", b"{}")
    await asyncio.sleep(0.1)
    await there.send("POST", "/x", b"{}")
    assert server.connections == 2
    await asyncio.wait_for(server.ended.wait(), 2)
    await there.close()


@pytest.mark.parametrize("said", [OK, OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")])
async def test_a_connection_that_the_server_closes_is_not_used_again(said: bytes, listen: Listen) -> None:
    server = Server(said, closing=True)
    there = wire(await listen(server.serve))
    for _ in range(2):
        assert (await there.send("POST", "/x", b"{}")).status == 200
        await asyncio.sleep(0.05)
    assert server.connections == 2
    await there.close()


async def test_a_connection_that_the_server_is_about_to_close_is_not_used_again(listen: Listen) -> None:
    server = Server(OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    there = wire(await listen(server.serve))
    for _ in range(2):
        assert await there.send("POST", "/x", b"{}") == Answer(200, b"{}")
    assert server.connections == 2
    await there.close()


@pytest.mark.parametrize("more", [OK, b"junk", b"HTTP/1.1 200 OK\r\n"])
async def test_what_is_said_behind_an_answer_is_nobodys_answer(more: bytes, listen: Listen) -> None:
    server = Server(OK + more)
    there = wire(await listen(server.serve))
    for _ in range(2):
        assert await there.send("POST", "/x", b"{}") == Answer(200, b"{}")
    assert server.connections == 2
    await there.close()


async def test_what_is_said_while_nobody_asks_is_nobodys_answer(listen: Listen) -> None:
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await request_of(reader)
        writer.write(OK)
        await asyncio.sleep(0.05)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]")
        await reader.read()

    there = wire(await listen(serve))
    for _ in range(2):
        assert await there.send("POST", "/x", b"{}") == Answer(200, b"{}")
        await asyncio.sleep(0.15)
    assert connections == 2
    await there.close()


async def test_what_was_said_but_not_yet_read_is_nobodys_answer(listen: Listen) -> None:
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        await request_of(reader)
        writer.write(OK)
        await reader.read()

    there = wire(await listen(serve))
    assert await there.send("POST", "/x", b"{}") == Answer(200, b"{}")
    os.write(writers[0].get_extra_info("socket").fileno(), b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]")
    assert await there.send("POST", "/x", b"{}") == Answer(200, b"{}")
    assert len(writers) == 2
    await there.close()


async def test_a_connection_whose_request_was_not_read_whole_is_not_used_again(listen: Listen) -> None:
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 No\r\nContent-Length: 2\r\n\r\n{}")
        await asyncio.sleep(60)

    there = wire(await listen(serve))
    for _ in range(2):
        assert await there.send("POST", "/x", bytes(20_000_000)) == Answer(413, b"{}")
    assert connections == 2
    await there.close()


async def test_more_requests_than_connections_wait_for_one(listen: Listen) -> None:
    server = Server()
    there = wire(await listen(server.serve), most_connections=2)
    answers = await asyncio.gather(*(there.send("POST", "/x", b"{}") for _ in range(20)))
    assert answers == [Answer(200, b"{}")] * 20
    assert server.connections == 2
    await there.close()


# What is given up.


def hanging(ended: asyncio.Event) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        writer.write(OK[:-1])
        await reader.read()
        ended.set()

    return serve


async def test_a_cancelled_request_gives_its_connection_up_and_its_place(listen: Listen) -> None:
    ended = asyncio.Event()
    there = wire(await listen(hanging(ended)), most_connections=1)
    for _ in range(3):
        ended.clear()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await there.send("POST", "/x", b"{}")
        await asyncio.wait_for(ended.wait(), 2)
    await there.close()


async def test_who_waits_for_a_connection_can_be_cancelled(listen: Listen) -> None:
    there = wire(await listen(hanging(asyncio.Event())), most_connections=1)
    first = asyncio.create_task(there.send("POST", "/x", b"{}"))
    await asyncio.sleep(0.05)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await there.send("POST", "/x", b"{}")
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    await there.close()


async def test_what_ends_after_the_close_is_closed_too(listen: Listen) -> None:
    go, ended = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_of(reader)
        await go.wait()
        writer.write(OK)
        await reader.read()
        ended.set()

    there = wire(await listen(serve))
    asked = asyncio.create_task(there.send("POST", "/x", b"{}"))
    await asyncio.sleep(0.05)
    await there.close()
    go.set()
    assert await asked == Answer(200, b"{}")
    await asyncio.wait_for(ended.wait(), 2)
