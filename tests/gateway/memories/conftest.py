from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memory_gateway.engine.schemas import SearchReply
from memory_gateway.storage.sqlite import SqliteDatabase
from tests.fakes import items
from tests.fakes.house import House, User
from tests.fakes.upstream import EMBEDDED_LIKE, EVEROS_LIKE, RecordingUpstream


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
