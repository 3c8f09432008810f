import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from memory_gateway.engine.schemas import MemoryKey
from memory_gateway.gateway.memories import shown as shown_module
from memory_gateway.gateway.memories.found import Found, MemoryRef
from memory_gateway.gateway.memories.merge import found
from memory_gateway.gateway.memories.shown import ShownMemories
from memory_gateway.gateway.memories.tasks import Tasks
from memory_gateway.kit.errors import NotFound, StorageUnavailable
from memory_gateway.storage.port import DatabaseFault
from memory_gateway.storage.sqlite import SqliteDatabase
from tests.fakes import items
from tests.fakes.clock import TurnedClock


@pytest.fixture
async def tasks() -> AsyncIterator[Tasks]:
    tasks = Tasks()
    yield tasks
    await tasks.close()


@pytest.fixture
def clock() -> TurnedClock:
    return TurnedClock()


@pytest.fixture
def shown(database: SqliteDatabase, tasks: Tasks, clock: TurnedClock) -> ShownMemories:
    return ShownMemories(database, clock, tasks)


def ref(memory_id: str, app_id: str = "default") -> MemoryRef:
    return MemoryRef(app_id, "default", "episode", memory_id)


def seen(memory_id: str, text: str = "hello") -> Found:
    fact = items.atomic_fact("f1", "a fact of this query")
    raw = items.episode(memory_id, text=text, score=0.7, atomic_facts=(fact,))
    return found("all_user_memory", MemoryKey("episode", memory_id), raw)


def note(shown: ShownMemories, *memories: Found, user_id: str = "ann") -> None:
    shown.note(user_id, "default", "default", memories)


async def rows(database: SqliteDatabase) -> list[Any]:
    return await database.fetch("SELECT user_id, memory_id FROM shown_memories ORDER BY user_id, memory_id")


async def test_what_was_shown_is_known_at_once_and_only_to_its_user(shown: ShownMemories) -> None:
    note(shown, seen("a"))
    assert (await shown.find("ann", ref("a")))["id"] == "a"
    for user_id, memory in [("anna", ref("a")), ("ann", ref("A")), ("ann", ref("a", "shop")), ("ann", ref("_"))]:
        with pytest.raises(NotFound):
            await shown.find(user_id, memory)


async def test_it_is_known_after_a_restart(database: SqliteDatabase, shown: ShownMemories, tasks: Tasks) -> None:
    note(shown, seen("a"))
    note(shown, seen("a"), user_id="anna")
    await tasks.close()
    assert await rows(database) == [("ann", "a"), ("anna", "a")]
    restarted = ShownMemories(database, TurnedClock(), Tasks())
    assert (await restarted.find("ann", ref("a")))["episode"] == "hello"


async def test_what_another_process_is_about_to_write_is_waited_for(
    database: SqliteDatabase, shown: ShownMemories
) -> None:
    note(shown, seen("a"))
    other = ShownMemories(database, TurnedClock(), Tasks())
    assert await other.snapshot("ann", ref("a")) is None
    assert (await other.find("ann", ref("a")))["id"] == "a"


async def test_where_others_share_the_users_a_busy_process_is_waited_for_longer(
    database: SqliteDatabase, clock: TurnedClock, tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, among_others = (ShownMemories(database, clock, tasks, has_others=has_others) for has_others in (False, True))
    looks = []

    async def sleep(seconds: float) -> None:
        looks.append(round(seconds, 2))

    monkeypatch.setattr(asyncio, "sleep", sleep)
    for shown, pauses in ((alone, [0, 0.1]), (among_others, [0, 0.1, 0.2, 0.4, 0.8])):
        looks.clear()
        with pytest.raises(NotFound):
            await shown.find("ann", ref("a"))
        assert looks == pauses


async def test_a_snapshot_holds_nothing_of_one_query(shown: ShownMemories, tasks: Tasks) -> None:
    note(shown, seen("a"))
    before = await shown.find("ann", ref("a"))
    await tasks.close()
    assert before == await shown.find("ann", ref("a")) == {**seen("a").raw, "score": None, "atomic_facts": []}


async def test_a_snapshot_of_a_message_keeps_no_payload(shown: ShownMemories, tasks: Tasks) -> None:
    content = [{"type": "text", "text": "see"}, {"type": "image", "base64": "AAAA", "name": "a.png"}]
    raw = items.unprocessed_message("m", content=content)
    note(shown, found("current_chat", MemoryKey("unprocessed_message", "m"), raw))
    await tasks.close()
    snapshot = await shown.find("ann", MemoryRef("default", "default", "unprocessed_message", "m"))
    assert snapshot["content"] == [content[0], {"type": "image", "base64": None, "name": "a.png"}]


@pytest.mark.sqlite
async def test_what_was_shown_before_is_not_written_again(
    database: SqliteDatabase, shown: ShownMemories, tasks: Tasks
) -> None:
    note(shown, seen("a"), seen("b"))
    await tasks.close()
    written = database.transactions
    for _ in range(100):
        note(shown, seen("a"), seen("b"))
    await tasks.close()
    assert database.transactions == written
    note(shown, seen("a", "hello again"))
    await tasks.close()
    assert database.transactions == written + 1
    assert (await shown.find("ann", ref("a")))["episode"] == "hello again"


@pytest.mark.sqlite
async def test_many_searches_share_a_write(
    database: SqliteDatabase, shown: ShownMemories, tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown_module, "_WRITE_DELAY_SECONDS", 2.0)  # longer than the searches take on a busy machine
    written = database.transactions
    for number in range(200):
        note(shown, seen(str(number)), user_id=f"user{number % 20}")
        await asyncio.sleep(0)
    await tasks.close()
    assert len(await rows(database)) == 200
    assert database.transactions == written + 1


async def test_a_user_keeps_the_last_ones(
    database: SqliteDatabase, shown: ShownMemories, tasks: Tasks, clock: TurnedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown_module, "KEPT_PER_USER", 2)
    for memory_id in ("a", "b", "c", "d"):
        clock.forward(seconds=600)
        note(shown, seen(memory_id))
        note(shown, seen("x"), user_id="anna")
        await tasks.close()
    assert await rows(database) == [("ann", "c"), ("ann", "d"), ("anna", "x")]


async def test_what_is_shown_again_unchanged_is_not_trimmed(
    database: SqliteDatabase, shown: ShownMemories, clock: TurnedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever else the user is shown meanwhile, here or by another process."""
    monkeypatch.setattr(shown_module, "KEPT_PER_USER", 2)
    other_tasks = Tasks()
    other = ShownMemories(database, clock, other_tasks)
    for minute in range(0, 31, 4):
        clock.forward(seconds=240)
        note(shown, seen("a"))
        await shown._tasks.close()
        for number in range(3):
            note(other, seen(f"{minute}.{number}"))
        await other_tasks.close()
        assert await other.snapshot("ann", ref("a")) is not None, minute


@pytest.mark.parametrize("fault", [StorageUnavailable("disk full"), DatabaseFault("a fault of the program")])
async def test_a_failed_write_is_tried_again_at_the_next_showing(
    database: SqliteDatabase, shown: ShownMemories, tasks: Tasks, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    async def refuse(_: object, **_owner: object) -> None:
        raise fault

    with monkeypatch.context() as patch:
        patch.setattr(database, "write", refuse)
        note(shown, seen("a"))
        await tasks.close()
    assert await rows(database) == []
    assert shown._unwritten == {}
    note(shown, seen("a"))
    await tasks.close()
    assert await rows(database) == [("ann", "a")]


async def test_memory_stays_bounded(shown: ShownMemories, tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown_module, "_REMEMBERED", 3)
    note(shown, *(seen(str(number)) for number in range(10)))
    assert len(shown._prints) == 3
    await tasks.close()
    assert shown._unwritten == {}


async def test_a_forgotten_user_is_gone_from_memory_too(
    database: SqliteDatabase, shown: ShownMemories, tasks: Tasks
) -> None:
    note(shown, seen("a"))
    note(shown, seen("a"), user_id="anna")
    shown.forget("ann")
    await tasks.close()
    assert await rows(database) == [("anna", "a")]
    with pytest.raises(NotFound):
        await shown.find("ann", ref("a"))
