"""An EverOS that answers at once, always the same: what is measured behind it is the gateway alone.

``python -m benchmarks.instant_everos PORT``. A search for `ALL` gets ten episodes of one session, any other the first
eight; an add is accumulated, a flush extracts nothing, and health is well.
"""

import asyncio
import sys
from typing import Any

import httptools
import msgspec
import uvloop

ALL = "all ten of them"
USER = "reader"
CONVERSATION = "instant"
SHOWN = 8
FILES = tuple(f"quarterly report {number:02}.txt" for number in range(20))

_EPISODES = [
    {
        "id": f"{USER}_ep_20260102_{number:08}",
        "user_id": USER,
        "app_id": "default",
        "project_id": "default",
        "session_id": f"chat:{CONVERSATION}",
        "timestamp": f"2026-01-02T10:00:{number:02}Z",
        "sender_ids": [USER, "assistant"],
        "summary": f"{USER} spoke of {FILES[number]}.",
        "subject": f"The report of quarter {number}",
        "episode": f"On 2 January {USER} said: please look at {FILES[number]}. "
        + "It is about the northern pier. " * 12,
        "type": "Conversation",
        "score": 0.9 - number / 100,
        "atomic_facts": [{"id": f"{USER}_af_{number}", "content": "The pier needs rope", "score": 0.5}],
    }
    for number in range(SHOWN + 2)
]
_NOTHING: dict[str, list[object]] = {
    "profiles": [],
    "agent_cases": [],
    "agent_skills": [],
    "unprocessed_messages": [],
}


def _reply(content: object) -> bytes:
    body = msgspec.json.encode(content)
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _data(**data: object) -> bytes:
    return _reply({"request_id": "0" * 32, "data": data})


_HEALTH = _reply(
    {
        "status": "ok",
        "version": "instant",
        "capabilities": {"llm": True, "embed": True, "rerank": True},
        "cascade": {"healthy": True, "pending": 0},
        "memorize_queue": {"healthy": True, "pending": 0},
    }
)
_SEARCH_ALL = _data(episodes=_EPISODES, **_NOTHING)
_SEARCH = _data(episodes=_EPISODES[:SHOWN], **_NOTHING)
_ADD = _data(message_count=1, status="accumulated")
_FLUSH = _data(status="no_extraction")


class _Connection(asyncio.Protocol):
    def connection_made(self, transport: Any) -> None:  # uvloop's is no subclass of asyncio's
        self._transport: asyncio.Transport = transport
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""
        self._body = b""

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._url, self._body = url, b""

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        self._transport.write(self._answer())

    def _answer(self) -> bytes:
        match self._url.rpartition(b"/")[2]:
            case b"search":
                return _SEARCH_ALL if ALL.encode() in self._body else _SEARCH
            case b"add":
                return _ADD
            case b"flush":
                return _FLUSH
        return _HEALTH


async def _serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(_Connection, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1])))
