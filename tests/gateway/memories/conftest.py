from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from memory_gateway.engine.schemas import SearchReply
from memory_gateway.storage.sqlite import SqliteDatabase
from tests.fakes import items
from tests.fakes.house import House, Json, User
from tests.fakes.upstream import EMBEDDED_LIKE, EVEROS_LIKE, RecordingUpstream

SCOPES = ["current_chat", "resources", "all_user_memory"]
METHODS = ["keyword", "vector", "hybrid", "agentic"]


@pytest.fixture
def everos() -> RecordingUpstream:
    """Keeps nobody apart, knows nothing of what is hidden."""
    return RecordingUpstream(EVEROS_LIKE)


@pytest.fixture
def embedded() -> RecordingUpstream:
    return RecordingUpstream(EMBEDDED_LIKE)


@pytest.fixture
async def house(database: SqliteDatabase, tmp_path: Path, everos: RecordingUpstream) -> AsyncIterator[House]:
    house = House(database, tmp_path, everos)
    yield house
    await house.close()


@pytest.fixture
async def embedded_house(database: SqliteDatabase, tmp_path: Path, embedded: RecordingUpstream) -> AsyncIterator[House]:
    house = House(database, tmp_path, embedded)
    yield house
    await house.close()


@pytest.fixture(params=[EVEROS_LIKE, EMBEDDED_LIKE], ids=["everos", "embedded"])
async def any_house(request: pytest.FixtureRequest, database: SqliteDatabase, tmp_path: Path) -> AsyncIterator[House]:
    """Over each kind of upstream."""
    house = House(database, tmp_path, RecordingUpstream(request.param))
    yield house
    await house.close()


@pytest.fixture
async def ann(house: House) -> User:
    return await house.user("ann")


@pytest.fixture
async def anna(house: House) -> User:
    return await house.user("anna")


async def show(upstream: RecordingUpstream, user: User, *memory_ids: str) -> None:
    """Let a search show episodes with these ids to the user."""
    episodes = [items.episode(memory_id, user_id=user.user_id, session_id=None) for memory_id in memory_ids]
    upstream.reply("search", SearchReply(episodes=episodes))
    assert len(await user.search("anything", top_k=-1)) == len(memory_ids)


async def uploaded(user: User, name: str = "notes.txt", content: bytes = b"The heron gateway listens.") -> Json:
    """The resource that a new file became."""
    response = await user.upload(name, content)
    assert response.status_code == 201, response.text
    resource: Json = response.json()["resource"]
    return resource


async def told(user: User, *stories: str, chat: str = "1", **body: Any) -> list[str]:
    """One closed episode for each story; their ids, as a search showed them."""
    for number, story in enumerate(stories):
        await user.add(story, chat=f"{chat}.{number}" if number else chat, **body)
        await user.flush(f"{chat}.{number}" if number else chat, **body)
    shown = await user.search(" ".join(stories), top_k=-1, **body)
    return [result["id"] for story in stories for result in shown if story in result["text"]]


async def history(user: User, memory_id: str) -> list[Json]:
    """The edits of a memory."""
    response = await user.edit("GET", memory_id, "/history")
    assert response.status_code == 200, response.text
    entries: list[Json] = response.json()["history"]
    return entries


def error(response: httpx.Response) -> tuple[int, str, str | None]:
    """Status, code and the field at fault."""
    fault = response.json()["error"]
    return response.status_code, fault["code"], (fault.get("details") or {}).get("field")
