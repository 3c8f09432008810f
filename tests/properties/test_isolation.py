"""Whatever users do, and whatever they ask for that is another's, no reply ever holds a trace of another user.

Every user marks each of their texts, file names, chats and titles with a word of their own. Programs of random
requests, many of them aimed at what belongs to others, run against the whole gateway: over the embedded engine, and
over an upstream that tells everybody everything. Every reply is searched for the words, ids and paths of the others.
"""

import asyncio
import re
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from memory_gateway.engine.engine import Engine
from memory_gateway.engine.parse import Parser, ReadText
from memory_gateway.kit.clock import system_clock
from memory_gateway.settings import Settings
from memory_gateway.storage.leases import Leases
from memory_gateway.storage.migrate import migrate
from memory_gateway.storage.sqlite import SqliteDatabase
from memory_gateway.upstream.embedded import EmbeddedUpstream
from tests.fakes.gossip import GossipUpstream
from tests.fakes.house import House, Json, User

MARKS = {"ann": "qzalfa", "anna": "qzbravo", "a_b": "qzchaos", "axb": "qzdelta"}
USERS = list(MARKS)
SCOPES = ["current_chat", "resources", "all_user_memory"]
TYPES = ["episode", "profile", "agent_case", "agent_skill", "unprocessed_message"]
METHODS = ["keyword", "hybrid", "agentic"]


_AGENT = re.compile(r'"agent_id":"\w+"')


class Step(NamedTuple):
    """One request of one user; what ``pick`` and ``other`` choose depends on the kind."""

    kind: str
    user: int
    pick: int
    other: int


class World:
    """The users, and everything they could have learned of each other's names."""

    def __init__(self, house: House, users: list[User]) -> None:
        self.house = house
        self.users = users
        self.chats = ["1", "2", *MARKS.values()]
        self.resources: list[str] = ["none"]
        self.memories: list[tuple[str, str]] = [("episode", "none")]
        self.own_words_seen: Counter[str] = Counter()

    async def run(self, program: list[Step]) -> None:
        for user in self.users:
            await self._say(user, 0, 0)
            await self._say(user, 1, 3)
        for step in program:
            await self.kinds[step.kind](self, self.users[step.user], step.pick, step.other)
        for user in self.users:
            await self._ask_everything(user)

    async def _say(self, user: User, pick: int, other: int) -> None:
        mark = MARKS[user.user_id]
        chat = ["1", mark, "2"][pick % 3]
        messages = [user.says(f"the {mark} falcon number {other}"), *self._more(user, other)]
        body = {"conversation_id": chat, "messages": messages, "project_id": ["default", "eu"][other // 4 % 2]}
        self._check(user, await user.post("/memories/add", body))

    def _more(self, user: User, other: int) -> list[Json]:
        mark = MARKS[user.user_id]
        agent = {"sender_id": "planner", "role": "assistant"}
        call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        match other % 4:
            case 1:
                return [user.says([{"type": "image", "base64": "aVZCT1J3", "name": f"{mark}.png"}])]
            case 2:
                return [user.says([{"type": "pdf", "uri": f"s3://bucket/{mark}.pdf", "name": f"{mark}.pdf"}])]
            case 3:
                calls = [user.says("Step", **agent, tool_calls=[call]) for _ in range(3)]
                results = [user.says("ok", sender_id="t", role="tool", tool_call_id="c") for _ in range(3)]
                steps = [message for pair in zip(calls, results, strict=True) for message in pair]
                return [*steps, user.says(f"Done, {mark}.", **agent)]
        return []

    async def _flush(self, user: User, pick: int, _: int) -> None:
        self._check(user, await user.flush(self.chats[pick % len(self.chats)]))

    async def _upload(self, user: User, pick: int, other: int) -> None:
        mark = MARKS[user.user_id]
        content = b"the same falcon bytes" if pick % 3 == 0 else f"the {mark} falcon file {other}".encode()
        response = await user.upload(f"{mark} falcon.txt", content, title=mark)
        self._check(user, response)
        self.resources.append(response.json()["resource"]["id"])

    async def _resource(self, user: User, pick: int, other: int) -> None:
        path = f"/resources/{self.resources[pick % len(self.resources)]}"
        calls = [("GET", ""), ("GET", "/content"), ("DELETE", ""), ("POST", "/restore")]
        method, action = calls[other % len(calls)]
        self._check(user, await self.house.client.request(method, path + action, headers=user.headers))
        self._check(user, await self.house.client.get("/resources", headers=user.headers))

    async def _search(self, user: User, pick: int, other: int) -> None:
        body: Json = {
            "query": ["falcon", *MARKS.values()][pick % 5],
            "scope": [SCOPES[:1], SCOPES[1:], SCOPES, SCOPES[2:]][other % 4],
            "conversation_id": self.chats[other % len(self.chats)],
            "method": METHODS[pick % 3],
            "top_k": [-1, 1, 8][other % 3],
            "project_id": ["default", "default", "eu"][pick % 3],
            "filters": self._filters(pick + other),
        }
        if pick % 4 == 0:
            body["agent_id"] = ["planner", "ann", "anna"][other % 3]
        self._check(user, await user.post("/memories/search", body))

    def _filters(self, pick: int) -> Json | None:
        chat = {"session_id": f"chat:{self.chats[pick % len(self.chats)]}"}
        resources = {"session_id": {"in": [f"resource:{user}:{self.resources[-1]}" for user in USERS]}}
        return [None, chat, {"OR": [chat, {}]}, resources, None, {}][pick % 6]

    async def _edit(self, user: User, pick: int, other: int) -> None:
        memory_type, memory_id = self.memories[pick % len(self.memories)]
        place = {"memory_type": memory_type}
        method, action = [("DELETE", ""), ("POST", "/restore"), ("PUT", ""), ("DELETE", "/override")][other % 4]
        body = {"text": f"the {MARKS[user.user_id]} falcon, corrected"} if method == "PUT" else None
        self._check(user, await user.edit(method, memory_id, action, body=body, place=place))
        self._check(user, await user.edit("GET", memory_id, "/history", place=place))

    async def _export(self, user: User, _: int, __: int) -> None:
        rows = [row async for row in self.house.memories.export(user.user_id)]
        self._look(user, str(rows))

    async def _ask_everything(self, user: User) -> None:
        for project in ("default", "eu"):
            for owner in ({}, {"agent_id": "planner"}):
                for chat in self.chats:
                    body = {"query": "falcon", "scope": SCOPES, "conversation_id": chat, "project_id": project}
                    self._check(user, await user.post("/memories/search", {**body, "method": "keyword", **owner}))

    def _check(self, user: User, response: httpx.Response) -> None:
        assert response.status_code < 500, response.text
        # the agent of a search comes back in its items: whoever asks for an agent named like a user learns nothing
        self._look(user, _AGENT.sub("", response.content.decode()) + str(response.headers))
        if "results" in response.text and response.status_code == 200:
            for result in response.json()["results"]:
                assert result["memory_type"] in TYPES
                self.memories.append((result["memory_type"], result["id"]))

    def _look(self, user: User, reply: str) -> None:
        for other, mark in MARKS.items():
            if other == user.user_id:
                self.own_words_seen[other] += mark in reply
                continue
            traces = (mark, f"/{other}/", f":{other}:", f'"{other}"', f"'{other}'", f'"{other}_', f"'{other}_")
            assert [trace for trace in traces if trace in reply] == [], f"{user.user_id} sees {other}: {reply}"

    kinds: ClassVar[dict[str, Callable[..., Any]]] = {
        "say": _say,
        "flush": _flush,
        "upload": _upload,
        "resource": _resource,
        "search": _search,
        "edit": _edit,
        "export": _export,
    }


class PlainReader:
    """Reads every document as text, without a child process."""

    async def read_file(self, path: Path, name: str) -> ReadText:
        return ReadText(path.read_text("utf-8"), readable=True)

    async def read_bytes(self, content: bytes, name: str) -> ReadText:
        return ReadText(content.decode("utf-8", "replace"), readable=True)


@asynccontextmanager
async def house_over_gossip(database: SqliteDatabase, folder: Path) -> AsyncIterator[House]:
    house = House(database, folder, GossipUpstream())
    yield house
    await house.close()


@asynccontextmanager
async def house_over_the_engine(database: SqliteDatabase, folder: Path) -> AsyncIterator[House]:
    parser = Parser(PlainReader(), (), folder)
    engine = Engine(database, system_clock, parser, None, Leases(database, system_clock, "test"))
    house = House(database, folder, EmbeddedUpstream(engine, Settings(data_dir=folder)))
    yield house
    await house.close()
    await engine.close()


OpenHouse = Callable[[SqliteDatabase, Path], AbstractAsyncContextManager[House]]


async def live(open_house: OpenHouse, program: list[Step]) -> World:
    with tempfile.TemporaryDirectory() as folder:
        database = SqliteDatabase(Path(folder) / "gateway.db")
        await migrate(database, system_clock)
        async with open_house(database, Path(folder)) as house:
            world = World(house, [await house.user(user_id) for user_id in USERS])
            await world.run(program)
        await database.close()
        return world


number = st.integers(0, 23)
programs = st.lists(
    st.builds(Step, st.sampled_from(sorted(World.kinds)), st.integers(0, 3), number, number), min_size=5, max_size=40
)


@pytest.mark.parametrize("open_house", [house_over_gossip, house_over_the_engine])
def test_no_reply_ever_holds_a_trace_of_another_user(open_house: OpenHouse) -> None:
    own_words_seen: Counter[str] = Counter()

    @settings(
        max_examples=12,
        deadline=None,
        database=None,
        phases=[Phase.generate],  # a program that fails is short enough to read, and shrinking it takes minutes
        suppress_health_check=list(HealthCheck),
    )
    @given(programs)
    def everything_stays_apart(program: list[Step]) -> None:
        own_words_seen.update(asyncio.run(live(open_house, program)).own_words_seen)

    everything_stays_apart()
    # that nobody sees another's words says something only if everybody sees their own
    assert all(own_words_seen[user] > 100 for user in USERS), own_words_seen
