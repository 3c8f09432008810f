"""An `Upstream` for gateway tests: it notes every call, answers from a script, and otherwise from a simple memory."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct

from memory_gateway.engine.schemas import (
    AddReply,
    AddRequest,
    Caller,
    FlushReply,
    FlushRequest,
    GetReply,
    GetRequest,
    MemoryKey,
    SearchReply,
    SearchRequest,
)
from memory_gateway.upstream.port import Erasure, UpstreamHealth, UpstreamTraits
from tests.fakes.simple_memory import SimpleMemory

EVEROS_LIKE = UpstreamTraits(
    shares_files=False,
    opens_client_uris=True,
    leaves_out_hidden=False,
    stable_ids=False,
    separates_agents=False,
    splits_messages=False,
    can_erase=False,
)
EMBEDDED_LIKE = UpstreamTraits(
    shares_files=True,
    opens_client_uris=False,
    leaves_out_hidden=True,
    stable_ids=True,
    separates_agents=True,
    splits_messages=True,
    can_erase=True,
)

Operation = Literal["add", "flush", "search", "get", "seal", "within", "erase", "export", "health"]
Request = AddRequest | FlushRequest | SearchRequest | GetRequest
Reply = TypeVar("Reply")


class Call(Struct, frozen=True):
    """One call, as it was made. ``request`` is the struct; for seal, erase and export what they were given."""

    operation: Operation
    request: Any
    caller: Caller | None = None


class RecordingUpstream:
    """``calls`` in order. Scripted outcomes (`reply`, `fail`) are used up in order, then the simple memory answers.

    With ``EMBEDDED_LIKE`` every caller has a space of their own, open segments show as episodes at once, and
    hidden and left-out memories stay out. With ``EVEROS_LIKE`` none of this, and episodes appear at flush.
    """

    def __init__(self, traits: UpstreamTraits = EVEROS_LIKE, name: str | None = None) -> None:
        self.name = name or ("embedded" if traits.leaves_out_hidden else "everos")
        self.traits = traits
        self.memory = SimpleMemory(traits)
        self.calls: list[Call] = []
        self.in_flight = 0
        self.closed = False
        self._script: dict[str, deque[object]] = {}
        self._delays: dict[str, float] = {}
        self._gates: dict[str, asyncio.Event] = {}

    # What a test asks and arranges.

    def requests(self, operation: Operation) -> list[Any]:
        return [call.request for call in self.calls if call.operation == operation]

    def callers(self, operation: Operation) -> list[Caller]:
        return [call.caller for call in self.calls if call.operation == operation and call.caller is not None]

    def sent(self, operation: Operation) -> list[dict[str, Any]]:
        """The bodies of all calls of this kind, as they would go over the wire."""
        return [sent(request) for request in self.requests(operation)]

    def reply(self, operation: Operation, *replies: object) -> None:
        """Answer the next calls with these. A callable is given the request and returns the reply."""
        self._script.setdefault(operation, deque()).extend(replies)

    def fail(self, operation: Operation, error: Exception, times: int = 1) -> None:
        """The next ``times`` calls raise this."""
        self.reply(operation, *[error] * times)

    def delay(self, operation: Operation, seconds: float) -> None:
        """Every call from now on takes this long."""
        self._delays[operation] = seconds

    def hold(self, operation: Operation) -> asyncio.Event:
        """Calls wait, after they were noted, until the returned event is set."""
        return self._gates.setdefault(operation, asyncio.Event())

    # The port.

    async def add(self, request: AddRequest, caller: Caller) -> AddReply:
        return await self._answer("add", request, caller, lambda: self.memory.add(request, caller))

    async def flush(self, request: FlushRequest, caller: Caller) -> FlushReply:
        return await self._answer("flush", request, caller, lambda: self.memory.flush(request, caller))

    async def search(self, request: SearchRequest, caller: Caller) -> SearchReply:
        return await self._answer("search", request, caller, lambda: self.memory.search(request, caller))

    async def get(self, request: GetRequest, caller: Caller) -> GetReply:
        return await self._answer("get", request, caller, lambda: self.memory.get(request, caller))

    async def seal(self, app_id: str, project_id: str, memory: MemoryKey, caller: Caller) -> None:
        scope = (app_id, project_id, memory)
        await self._answer("seal", scope, caller, lambda: self.memory.seal(app_id, project_id, memory, caller))

    async def within(self, request: SearchRequest, episode_ids: list[str], caller: Caller) -> frozenset[str] | None:
        return await self._answer("within", request, caller, lambda: self.memory.within(request, episode_ids, caller))

    async def erase(self, user_id: str) -> Erasure:
        return await self._answer("erase", user_id, None, lambda: self.memory.erase(user_id))

    async def export(self, user_id: str, places: Sequence[tuple[str, str]]) -> AsyncIterator[dict[str, Any]]:
        wanted = (user_id, list(places))
        for held in await self._answer("export", wanted, None, lambda: self.memory.export(user_id)):
            yield held

    async def health(self) -> UpstreamHealth:
        capabilities = {"keyword": True, "vector": True, "llm": False}
        return await self._answer("health", None, None, lambda: UpstreamHealth(self.name, True, capabilities, 0))

    async def close(self) -> None:
        self.closed = True

    async def _answer(
        self, operation: Operation, request: object, caller: Caller | None, remember: Callable[[], Reply]
    ) -> Reply:
        self.calls.append(Call(operation, request, caller))
        self.in_flight += 1
        try:
            await self._wait(operation)
            script = self._script.get(operation)
            return _play(script.popleft(), request) if script else remember()
        finally:
            self.in_flight -= 1

    async def _wait(self, operation: Operation) -> None:
        if gate := self._gates.get(operation):
            await gate.wait()
        if seconds := self._delays.get(operation):
            await asyncio.sleep(seconds)


def sent(request: Request) -> dict[str, Any]:
    """What goes over the wire: unset fields left out; a client's messages as the client wrote them."""
    body: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(request))
    client_messages = body.pop("wire_messages", None)
    return body if client_messages is None else {**body, "messages": client_messages}


def _play(outcome: object, request: object) -> Any:
    if isinstance(outcome, Exception):
        raise outcome
    return outcome(request) if callable(outcome) else outcome
