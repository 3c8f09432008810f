"""The twin that the Memory-Service is measured against does the same work and gives the same answers."""

import importlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import pytest

from benchmarks.service_throughput import CATEGORIES, LIST, PATH, copy, sentences
from tests.fakes.memory_service import ServiceHouse, open_house

PATHS = (LIST, f"{LIST}&limit=7&offset=3", f"{LIST}&category=event&min_importance=4", f"{PATH}?user_id=nobody")


@asynccontextmanager
async def twin_on(database: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[httpx.AsyncClient]:
    monkeypatch.setenv("TWIN_DATABASE", str(database))
    module = importlib.import_module("benchmarks.twin_service.app")
    client = httpx.AsyncClient(transport=httpx.ASGITransport(module.app), base_url="http://twin")
    async with module.lifespan(module.app), client:
        yield client


async def fill(house: ServiceHouse, service: httpx.AsyncClient) -> None:
    for number, text in enumerate(islice(sentences(), 60)):
        house.clock.forward(seconds=1)
        body = {"user_id": "reader", "content": text, "importance": 1 + number % 10, "category": CATEGORIES[number % 4]}
        reply = await service.post(PATH, json={**body, "keywords": text.split()[:2]})
        assert reply.json()["merged"] is False


def settled(saved: dict[str, Any]) -> dict[str, Any]:
    """What two creates have in common: all but ids and times, in the same order."""
    memory = {name: value for name, value in saved["memory"].items() if name != "id" and not str(value).endswith("Z")}
    return {**saved, "memory": memory, "names": list(saved["memory"])}


async def test_both_give_the_same_pages_entries_and_new_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = tmp_path / "twin.db"
    async with open_house(tmp_path) as house, house.client() as service, twin_on(database, monkeypatch) as twin:
        await fill(house, service)
        entries = (await service.get(f"{LIST}&limit=1000")).json()["memories"]
        assert len(entries) == 60
        await copy(entries, database)
        for path in (*PATHS, f"{PATH}/{entries[0]['id']}"):
            ours, theirs = await service.get(path), await twin.get(path)
            assert (ours.status_code, ours.text) == (theirs.status_code, theirs.text) == (200, theirs.text)
        new = {"user_id": "writer", "content": "周五发布新版本。", "session_id": "chat:1", "source": "conversation"}
        ours, theirs = await service.post(PATH, json=new), await twin.post(PATH, json=new)
        assert ours.status_code == theirs.status_code == 201
        assert settled(ours.json()) == settled(theirs.json())
        assert (await twin.get(f"{PATH}?user_id=writer")).json()["total"] == 1


def test_the_texts_are_the_same_each_time_and_no_two_are_equal() -> None:
    texts = list(islice(sentences(), 12_000))
    assert texts[:50] == list(islice(sentences(), 50))
    assert len(set(texts)) == len(texts)
