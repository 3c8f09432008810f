"""The twin that the gateway is measured against does the same work and gives the same answers."""

import importlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from litestar import Litestar
from litestar.testing import AsyncTestClient

from benchmarks import list_resources
from benchmarks.servers import User
from memory_gateway.server import build_gateway, open_facts, open_rooms, open_storage
from memory_gateway.settings import Settings
from memory_gateway.storage.choose import FILE_NAME

SECRET = "secret-of-the-test"


class Both(NamedTuple):
    """The two servers on one database, and two users with 50 resources each."""

    gateway: AsyncTestClient[Litestar]
    twin: httpx.AsyncClient
    ann: User
    anna: User

    async def answers(self, path: str, headers: dict[str, str]) -> list[tuple[int, Any]]:
        replies = await self.gateway.get(path, headers=headers), await self.twin.get(path, headers=headers)
        return [(reply.status_code, reply.json()) for reply in replies]


@pytest.fixture
async def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Both]:
    database = tmp_path / FILE_NAME
    settings = Settings(data_dir=tmp_path, embedder="none", admin_key="admin-of-the-test", key_secret=SECRET)
    async with (
        open_storage(settings) as opened,
        open_facts(settings, opened, at_work=False) as facts,
        open_rooms(settings, opened, facts) as rooms,
    ):
        ann, anna = [User(name, (await rooms.accounts.create(name)).user_key) for name in ("ann", "anna")]
        await list_resources.fill(database, [ann, anna])
        monkeypatch.setenv("TWIN_DATABASE", str(database))
        monkeypatch.setenv("TWIN_KEY_SECRET", SECRET)
        module = importlib.reload(importlib.import_module("benchmarks.twin.app"))
        transport = httpx.ASGITransport(module.app)
        async with (
            AsyncTestClient(build_gateway(settings, rooms)) as gateway,
            httpx.AsyncClient(transport=transport, base_url="http://twin") as twin,
        ):
            yield Both(gateway, twin, ann, anna)
        await module.engine.dispose()


@pytest.mark.parametrize(
    "query", ["", "?limit=50", "?limit=20", "?app_id=other", "?app_id=default&project_id=default&limit=1"]
)
async def test_both_give_the_same_page(both: Both, query: str) -> None:
    ours, theirs = await both.answers(f"/resources{query}", both.ann.headers)
    assert ours == theirs
    assert ours[0] == 200


async def test_both_go_on_from_the_same_cursor(both: Both) -> None:
    (_, first), _ = await both.answers("/resources?limit=30", both.ann.headers)
    ours, theirs = await both.answers(f"/resources?limit=30&cursor={first['next_cursor']}", both.ann.headers)
    assert ours == theirs
    assert len(ours[1]["resources"]) == 20
    assert ours[1]["next_cursor"] is None


async def test_both_refuse_another_users_key(both: Both) -> None:
    answers = await both.answers("/resources", {**both.ann.headers, "X-User-Key": both.anna.user_key})
    assert [status for status, _ in answers] == [401, 401]
