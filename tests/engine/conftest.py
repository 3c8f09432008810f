"""A real engine on a temporary database, with a reader that takes every document for plain text."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from memory_gateway.embeddings.port import Embedder
from memory_gateway.engine.engine import Engine
from memory_gateway.engine.meanings import make_none
from memory_gateway.engine.parse import Parser, ReadText
from memory_gateway.engine.profiles import no_stated_facts
from memory_gateway.engine.schemas import (
    AddReply,
    AddRequest,
    Caller,
    FunctionCall,
    GetReply,
    GetRequest,
    MemoryKey,
    Message,
    Method,
    SearchReply,
    SearchRequest,
    ToolCall,
)
from memory_gateway.storage.leases import Leases
from memory_gateway.storage.migrate import migrate
from tests.fakes.clock import TurnedClock
from tests.fakes.databases import AnyDatabase, open_test_database

START_MS = 1_780_000_000_000


class PlainReader:
    """Every document is its own text; one that is not UTF-8 cannot be read."""

    async def read_file(self, path: Path, name: str) -> ReadText:
        return await self.read_bytes(path.read_bytes(), name)

    async def read_bytes(self, content: bytes, name: str) -> ReadText:
        try:
            return ReadText(content.decode(), readable=True)
        except UnicodeDecodeError:
            return ReadText("", readable=False, error=f"{name} is not text")


class Talk:
    """Short words for what tests do with an engine. Every message is a second after the one before."""

    def __init__(self, engine: Engine, database: AnyDatabase, clock: TurnedClock) -> None:
        self.engine = engine
        self.database = database
        self.clock = clock
        self._seconds: Iterator[int] = count()

    def message(self, text: Any, sender: str = "ann", role: Any = "user", **fields: Any) -> Message:
        fields.setdefault("timestamp", START_MS + next(self._seconds) * 1000)
        return Message(sender_id=sender, role=role, content=text, **fields)

    async def say(self, *texts: str, user: str = "ann", session: str = "chat:1", **place: Any) -> AddReply:
        messages = tuple(self.message(text, user) for text in texts)
        return await self.add(*messages, user=user, session=session, **place)

    async def add(self, *messages: Message, user: str = "ann", session: str = "chat:1", **place: Any) -> AddReply:
        return await self.engine.add(AddRequest(session, messages, **place), Caller(user_id=user))

    async def trajectory(self, request: str, *, session: str, result: str = "saved", user: str = "ann") -> None:
        """A user's request, two tool calls by the agent ``bot`` and its answer."""
        await self.add(
            self.message(request, user),
            self.call("read_logs", "c1"),
            self.message("timeout in the worker", "runner", "tool", tool_call_id="c1"),
            self.call("edit_config", "c2"),
            self.message(result, "runner", "tool", tool_call_id="c2"),
            self.message("Raised max_connections, the fault is gone.", "bot", "assistant"),
            user=user,
            session=session,
        )

    def call(self, name: str, call_id: str, agent: str = "bot") -> Message:
        calls = [ToolCall(id=call_id, function=FunctionCall(name=name, arguments='{"service":"falcon"}'))]
        return self.message("", agent, "assistant", tool_calls=calls)

    async def search(
        self, query: str, *, user: str = "ann", method: Method = "keyword", caller: Caller | None = None, **options: Any
    ) -> SearchReply:
        owner: dict[str, Any] = {} if "agent_id" in options else {"user_id": user}
        request = SearchRequest(query=query, method=method, **owner, **options)
        return await self.engine.search(request, caller or Caller(user_id=user))

    async def found(self, query: str, **options: Any) -> list[str]:
        """The best fact of each hit, without its time."""
        reply = await self.search(query, **options)
        return [episode["atomic_facts"][0]["content"].split("] ", 1)[1] for episode in reply.episodes]

    async def episodes(self, user: str = "ann", caller: Caller | None = None, **options: Any) -> GetReply:
        request = GetRequest(memory_type="episode", user_id=user, **options)
        return await self.engine.get(request, caller or Caller(user_id=user))


@asynccontextmanager
async def open_talk(folder: Path, embedder: Embedder | None = None, **options: Any) -> AsyncIterator[Talk]:
    database, clock = open_test_database(folder / "engine.db"), TurnedClock()
    await migrate(database, clock)
    made = Parser(PlainReader(), options.get("roots", ()), options.get("data_dir", folder / "data"))
    facts = options.get("stated_facts", no_stated_facts)
    leases = Leases(database, clock, "test")
    make = options.get("make_embedder", make_none)
    engine = Engine(database, clock, made, embedder, leases, stated_facts=facts, make_embedder=make)
    yield Talk(engine, database, clock)
    await engine.close()
    await database.close()


@pytest.fixture
async def talk(tmp_path: Path) -> AsyncIterator[Talk]:
    async with open_talk(tmp_path) as opened:
        yield opened


def hidden(memory_type: Any, memory_id: str, user: str = "ann") -> Caller:
    return Caller(user_id=user, hidden=(MemoryKey(memory_type, memory_id),))
