"""The EverOS adapter when the server, or something in its place, does not answer as EverOS does."""

import asyncio
import socket
from typing import Any

import httpx
import pytest

from memory_gateway.engine.schemas import AddRequest, Caller, FlushRequest, GetRequest, Message, SearchRequest
from memory_gateway.kit.errors import UpstreamRefused, UpstreamTimeout, UpstreamUnreachable
from memory_gateway.upstream.everos import EverosUpstream
from tests.fakes import items
from tests.fakes.everos import EMPTY, EverosTurns, answering
from tests.upstream.conftest import Listen

ANN = Caller(user_id="ann")
ADD = AddRequest("chat:1", (Message("ann", "user", 1_780_000_000_000, "hello"),))
FLUSH = FlushRequest("chat:1")
SEARCH = SearchRequest("tea", user_id="ann")


# Answers that make no sense.


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b""),
        (200, b"<html>hello</html>"),
        (200, b"\xff\xfe"),
        (200, b'{"data":{"episodes":' + b"[" * 100_000),
        (200, []),
        (200, {"data": []}),
        (200, {"data": {}}),
        (200, EMPTY),
        (200, {"data": {**EMPTY, "episodes": None}}),
        (200, {"data": {**EMPTY, "episodes": ["x"]}}),
        (200, {"data": {key: value for key, value in EMPTY.items() if key != "profiles"}}),
        (204, b""),
        (302, b""),
        (302, {"error": {"code": "MOVED", "message": "elsewhere"}}),
        (404, {"detail": "Not Found"}),
        (405, {"detail": "Method Not Allowed"}),
        (422, {"error": {"code": "INVALID_INPUT"}}),
        (422, {"error": "bad"}),
        (502, b"<html>Bad Gateway</html>"),
        (503, b""),
    ],
)
async def test_an_answer_that_is_not_of_everos_is_unreachable(status: int, body: object) -> None:
    with pytest.raises(UpstreamUnreachable) as caught:
        await answering(status, body).search(SEARCH, ANN)
    assert (caught.value.status, caught.value.details) == (502, None)


@pytest.mark.parametrize("data", [{"message_count": "1", "status": "accumulated"}, {"message_count": 1, "status": "x"}])
async def test_an_add_reply_of_another_shape_is_unreachable(data: dict[str, Any]) -> None:
    with pytest.raises(UpstreamUnreachable):
        await answering(200, {"data": data}).add(ADD, ANN)


async def test_more_fields_than_known_do_no_harm() -> None:
    reply = await answering(200, {"request_id": "1", "data": {**EMPTY, "foresights": [1]}, "took": 3}).search(
        SEARCH, ANN
    )
    assert reply.episodes == []


async def test_items_come_through_untouched() -> None:
    item = {**items.episode("e1"), "score": 3.682631492614746, "big": 2**70, "new": {"nested": [None, "é", 1.0]}}
    reply = await answering(200, {"data": {**EMPTY, "episodes": [item]}}).search(SEARCH, ANN)
    assert reply.episodes == [item]


# The way there.


@pytest.mark.parametrize("fault", [httpx.ConnectError("refused"), httpx.ReadError("reset")])
async def test_a_read_is_sent_once_more_when_the_connection_fails(fault: Exception) -> None:
    server = EverosTurns(fault, EMPTY)
    assert (await server.upstream().search(SEARCH, ANN)).episodes == []
    assert len(server.requests) == 2


async def test_a_read_is_not_sent_a_third_time() -> None:
    server = EverosTurns(httpx.ConnectError("refused at 10.0.0.7"))
    with pytest.raises(UpstreamUnreachable) as caught:
        await server.upstream().get(GetRequest("episode", user_id="ann"), ANN)
    assert len(server.requests) == 2
    assert "10.0.0.7" not in caught.value.message


@pytest.mark.parametrize("fault", [httpx.ConnectError("refused"), httpx.ReadError("reset"), httpx.ReadTimeout("slow")])
@pytest.mark.parametrize("call", ["add", "flush"])
async def test_a_write_is_never_sent_twice(call: str, fault: httpx.TransportError) -> None:
    server = EverosTurns(fault)
    upstream = server.upstream()
    expected = UpstreamTimeout if isinstance(fault, httpx.TimeoutException) else UpstreamUnreachable
    with pytest.raises(expected):
        await (upstream.add(ADD, ANN) if call == "add" else upstream.flush(FLUSH, ANN))
    assert len(server.requests) == 1


@pytest.mark.parametrize("fault", [httpx.ConnectTimeout("x"), httpx.ReadTimeout("x"), httpx.PoolTimeout("x")])
async def test_too_slow_is_a_504_and_not_tried_again(fault: Exception) -> None:
    server = EverosTurns(fault)
    with pytest.raises(UpstreamTimeout) as caught:
        await server.upstream().search(SEARCH, ANN)
    assert caught.value.status == 504
    assert len(server.requests) == 1


async def test_the_timeout_bounds_the_whole_call_also_when_bytes_drip(listen: Listen) -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
        for _ in range(100):
            writer.write(b" ")
            await asyncio.sleep(0.05)

    upstream = EverosUpstream(await listen(drip), timeout=0.3)
    with pytest.raises(UpstreamTimeout):
        async with asyncio.timeout(3):
            await upstream.search(SEARCH, ANN)
    await upstream.close()


async def test_a_write_after_a_500_does_not_meet_the_connection_that_everos_is_closing(listen: Listen) -> None:
    """EverOS answers 500 on a keep-alive connection, renders a traceback for seconds, and then cuts it."""
    answers = [b'{"error":{"code":"INTERNAL_ERROR","message":"x"}}', b'{"data":{"status":"extracted"}}']
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        body = answers[min(connections, 2) - 1]
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
        status = b"500 Oops" if connections == 1 else b"200 OK"
        writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        await reader.read(1)

    upstream = EverosUpstream(await listen(serve))
    with pytest.raises(UpstreamRefused):
        await upstream.flush(FLUSH, ANN)
    assert (await upstream.flush(FLUSH, ANN)).status == "extracted"
    assert connections == 2
    await upstream.close()


async def test_nobody_listening_is_a_502_and_an_unhealthy_upstream() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        upstream = EverosUpstream(f"http://127.0.0.1:{unused.getsockname()[1]}")
        with pytest.raises(UpstreamUnreachable):
            await upstream.add(ADD, ANN)
        health = await upstream.health()
    assert (health.name, health.healthy, health.backlog) == ("everos", False, None)
    assert health.details == {"reason": "cannot be reached"}
    await upstream.close()


async def test_the_environments_proxy_is_not_asked(monkeypatch: pytest.MonkeyPatch, listen: Listen) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 35\r\n\r\n{"data":{"status":"no_extraction"}}')

    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    upstream = EverosUpstream(await listen(serve))
    assert (await upstream.flush(FLUSH, ANN)).status == "no_extraction"
    await upstream.close()
