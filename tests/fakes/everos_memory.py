"""An EverOS that remembers, with the faults of the real one: how it names messages, and what it does when it fails."""

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import Any, Literal

import httpx
import msgspec

from memory_gateway.upstream.everos import EverosUpstream
from tests.fakes import items
from tests.fakes.everos import BASE_URL, EMPTY, TransportWire, body_of

Place = tuple[str, str, str]
Fault = Literal["refused", "no answer", "hanging", "garbage", "model away", "extraction failed", "queued"]
ERROR = {"request_id": "1", "error": {"code": "INTERNAL_ERROR", "message": "no model at /srv/everos", "path": "/x"}}
HEALTHY = {"status": "ok", "version": "1.5.1", "cascade": {"healthy": True}, "memorize_queue": {"healthy": True}}


class EverosMemory(httpx.AsyncBaseTransport):
    """``fault`` holds until it is None again; `fail` is for the next calls of a kind only.

    A buffered message is named by session, timestamp and place in its request; another of its name is dropped without
    a word. A flush makes one episode of what is buffered.
    """

    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []
        self.buffers: dict[Place, dict[str, dict[str, Any]]] = {}
        self.episodes: list[dict[str, Any]] = []
        self.fault: Fault | None = None
        self._next_faults: dict[str, deque[Fault]] = {}

    def upstream(self, **options: Any) -> EverosUpstream:
        return EverosUpstream(BASE_URL, wire=TransportWire(self), **options)

    def fail(self, call: str, *faults: Fault) -> None:
        self._next_faults.setdefault(call, deque()).extend(faults)

    def sent(self, call: str) -> list[dict[str, Any]]:
        return [body_of(request) for request in self.requests if _call(request) == call]

    def buffered(self, session_id: str = "chat:1") -> list[str]:
        """The contents that wait for extraction, as EverOS reads them: by time, then by name."""
        return [message["content"] for message in self._ordered(("default", "default", session_id))]

    @property
    def remembered(self) -> list[str]:
        return [episode["episode"] for episode in self.episodes]

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        self.requests.append(request)
        waiting = self._next_faults.get(_call(request))
        fault = waiting.popleft() if waiting else self.fault
        match fault:
            case "refused":
                raise httpx.ConnectError("All connection attempts failed")
            case "hanging":
                await asyncio.sleep(3600)
            case "garbage":
                return httpx.Response(200, content=b"<html>It works!</html>")
            case "model away":
                return httpx.Response(500, json=ERROR)
            case "queued":
                return httpx.Response(202, json={"data": {"status": "queued", "message_count": 1, "pending": 1}})
        answer = self._answer(_call(request), body_of(request), fault)
        if fault == "no answer":
            raise httpx.RemoteProtocolError("Server disconnected without sending a response.")
        return answer

    def _answer(self, call: str, body: dict[str, Any], fault: Fault | None) -> httpx.Response:
        if call == "health":
            return httpx.Response(200, json=HEALTHY)
        place = (body.get("app_id", "default"), body.get("project_id", "default"), body.get("session_id", ""))
        if call == "add":
            self._buffer(place, body["messages"])
            return _success({"message_count": len(body["messages"]), "status": "accumulated"})
        if call == "flush":
            said = self._ordered(place)
            self.buffers.pop(place, None)
            if fault == "extraction failed":
                return httpx.Response(500, json=ERROR)
            self.episodes.extend(_episodes(place, said))
            return _success({"status": "extracted" if said else "no_extraction"})
        return _success({**EMPTY, "episodes": [one for one in self.episodes if one["user_id"] == body.get("user_id")]})

    def _buffer(self, place: Place, messages: list[dict[str, Any]]) -> None:
        buffer = self.buffers.setdefault(place, {})
        for index, message in enumerate(messages):
            buffer.setdefault(f"m_{place[2]}_{int(message['timestamp'])}_{index:03}", message)

    def _ordered(self, place: Place) -> list[dict[str, Any]]:
        buffer = self.buffers.get(place, {})
        return [buffer[name] for name in sorted(buffer, key=lambda name: (_ms(buffer[name]), name))]


def _episodes(place: Place, said: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    text = " / ".join(str(message["content"]) for message in said)
    for sender in dict.fromkeys(message["sender_id"] for message in said if message["role"] == "user"):
        yield items.episode(f"{sender}_ep", user_id=sender, session_id=place[2], text=text)


def _ms(message: dict[str, Any]) -> int:
    time = int(message["timestamp"])
    return time if time >= 1_000_000_000_000 else time * 1000


def _call(request: httpx.Request) -> str:
    return request.url.path.rsplit("/", 1)[1]


def _success(data: dict[str, Any]) -> httpx.Response:
    return httpx.Response(200, content=msgspec.json.encode({"request_id": "1", "data": data}))
