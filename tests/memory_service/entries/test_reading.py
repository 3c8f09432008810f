import asyncio
from pathlib import Path
from typing import Any

import pytest

from memory_gateway.kit.errors import InvalidInput, MalformedRequest, NotFound, StorageUnavailable
from tests.fakes.clock import TurnedClock
from tests.fakes.entries import LOOK_ALIKES, Room, open_room

ENDS = "2026-05-28T20:27:40Z"


async def test_a_page_is_in_order_of_importance_then_priority_then_newest(room: Room) -> None:
    for text, importance, priority in (
        ("old and plain", 5, 1),
        ("vital", 9, 0),
        ("pressing", 5, 3),
        ("new and plain 新", 5, 1),
        ("trifle", 1, 9),
    ):
        await room.say(text, importance=importance, priority=priority)
    assert await room.listed() == ["vital", "pressing", "new and plain 新", "old and plain", "trifle"]


async def test_total_counts_all_that_match_and_the_page_is_cut(room: Room) -> None:
    for number in range(7):
        await room.say(f"{'abcdefg'[number] * 9}", importance=number + 1, category="event" if number % 2 else "task")
    entries, total = await room.entries.list("ann", None, 0, 2, 1)
    assert ([entry.content[0] for entry in entries], total) == (["f", "e"], 7)
    entries, total = await room.entries.list("ann", "event", 3, 50, 0)
    assert ([entry.content[0] for entry in entries], total) == (["f", "d"], 2)
    assert await room.entries.list("ann", None, 11) == ([], 0)
    assert (await room.entries.list("ann", None, -(10**30), 1000, 2**31 - 1)) == ([], 7)
    assert (await room.entries.list("ann", "relationship", 10**30)) == ([], 0)


async def test_a_user_without_memories_has_an_empty_page(room: Room) -> None:
    assert await room.entries.list("ann") == ([], 0)
    assert await room.entries.categories("ann") == {}
    assert await room.query("x") == ([], 0)
    assert await room.entries.consolidate("ann") == 0
    assert await room.entries.decay("ann") == (0, 0) == await room.entries.decay("ann", dry_run=True)
    assert await room.stored() == []
    await room.entries.erase("ann")


@pytest.mark.parametrize(("limit", "offset", "field"), [(0, 0, "limit"), (1001, 0, "limit"), (1, -1, "offset")])
async def test_a_page_out_of_range_is_refused(room: Room, limit: int, offset: int, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        await room.entries.list("ann", None, 0, limit, offset)
    assert refused.value.field == field


async def test_every_call_that_needs_a_user_says_so(room: Room) -> None:
    for call in (
        room.entries.list(None),
        room.query("x", " "),
        room.entries.consolidate(""),
        room.entries.decay(None),
        room.entries.categories(None),
    ):
        with pytest.raises(MalformedRequest, match=r"^缺少 user_id$"):
            await call


async def test_categories_are_counted_as_they_change(room: Room) -> None:
    await room.say("one tea", category="event")
    two = await room.say("two 牛奶", category="event")
    three = await room.say("three lemons", category="task", expires_at=ENDS)
    assert await room.entries.categories("ann") == {"event": 2, "task": 1}
    await room.change(two.id, category="personal_info")
    assert await room.entries.categories("ann") == {"personal_info": 1, "event": 1, "task": 1}
    room.clock.forward(seconds=60)
    await room.entries.delete(two.id)
    assert await room.entries.categories("ann") == {"event": 1}
    await room.entries.delete(three.id)
    assert await room.entries.categories("ann") == {"event": 1}


async def test_what_has_expired_is_seen_nowhere(room: Room) -> None:
    entry = await room.say("The bus leaves at nine.", category="personal_info", expires_at=ENDS)
    room.clock.forward(seconds=59.999)
    assert (await room.entries.get(entry.id)).id == entry.id
    room.clock.forward(seconds=0.001)
    assert await room.entries.list("ann") == ([], 0) == await room.query("bus")
    assert await room.entries.list("ann", "personal_info") == ([], 0)
    assert await room.entries.categories("ann") == {}
    assert await room.entries.stated_facts("ann") == []
    with pytest.raises(NotFound, match=r"^记忆不存在$"):
        await room.entries.get(entry.id)
    with pytest.raises(NotFound, match=r"^记忆不存在$"):
        await room.change(entry.id, expires_at=None)


@pytest.mark.parametrize("entry_id", ["", "nobody", "%", "a\0", "\ud800", "x" * 10_000])
async def test_an_unknown_id_is_not_found_and_can_be_deleted(room: Room, entry_id: str) -> None:
    await room.say("The bus leaves at nine.")
    with pytest.raises(NotFound, match=r"^记忆不存在$"):
        await room.entries.get(entry_id)
    with pytest.raises(NotFound, match=r"^记忆不存在$"):
        await room.change(entry_id, content="x")
    await room.entries.delete(entry_id)
    assert len(await room.stored()) == 1


async def test_a_get_shows_the_count_before_it_and_is_counted_with_its_time(room: Room) -> None:
    entry = await room.say("The bus leaves at nine.")
    room.clock.forward(seconds=5)
    assert await room.entries.get(entry.id) == entry
    await room.entries.close()
    (stored,) = await room.stored()
    assert (stored["access_count"], stored["last_access"]) == (1, "2026-05-28T20:26:45.000Z")
    assert stored["updated_at"] == entry.updated_at


async def test_lists_and_queries_count_no_access(room: Room) -> None:
    await room.say("The bus leaves at nine.")
    room.clock.forward(seconds=5)
    await room.listed()
    await room.found("bus")
    await room.entries.close()
    (stored,) = await room.stored()
    assert (stored["access_count"], stored["last_access"]) == (0, "2026-05-28T20:26:40.000Z")


async def test_a_thousand_concurrent_reads_are_all_counted_after_a_clean_stop(tmp_path: Path) -> None:
    clock = TurnedClock()
    async with open_room(tmp_path, clock) as room:
        ids = [(await room.say(text)).id for text in ("The bus leaves at nine.", "每天早上看早报。")]
        await asyncio.gather(*(room.entries.get(ids[number % 2]) for number in range(1000)))
    async with open_room(tmp_path, clock) as room:
        assert [entry["access_count"] for entry in await room.stored()] == [500, 500]


async def test_accesses_are_written_without_a_stop_too(room: Room) -> None:
    entry = await room.say("The bus leaves at nine.")
    await room.entries.get(entry.id)
    for _ in range(100):
        if (await room.stored())[0]["access_count"]:
            break
        await asyncio.sleep(0.02)
    assert (await room.stored())[0]["access_count"] == 1


async def test_accesses_that_cannot_be_written_now_are_written_later(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = await room.say("The bus leaves at nine.")
    await room.entries.get(entry.id)

    async def full(_work: Any, **_owner: Any) -> Any:
        raise StorageUnavailable("disk full")

    with monkeypatch.context() as fault:
        fault.setattr(room.database, "write", full)
        with pytest.raises(StorageUnavailable):
            await room.entries.consolidate("ann")
    await room.entries.get(entry.id)
    await room.entries.consolidate("ann")
    assert (await room.stored())[0]["access_count"] == 2


async def test_stated_facts_are_personal_information_and_preferences(room: Room) -> None:
    await room.say("My name is Ann.", category="personal_info")
    await room.say("喜欢喝茶。", category="user_preference")
    await room.say("The bus leaves at nine.")
    await room.say("Anna lives here.", "anna", category="personal_info")
    facts = await room.entries.stated_facts("ann")
    assert [fact.content for fact in facts] == ["My name is Ann.", "喜欢喝茶。"]
    assert await room.entries.stated_facts("nobody") == []


async def test_an_export_holds_every_entry_and_an_erasure_leaves_none(room: Room) -> None:
    for user in LOOK_ALIKES:
        await room.say("The bus leaves at nine.", user, expires_at=ENDS)
        await room.say(f"{user} likes tea and long walks.", user)
    room.clock.forward(seconds=3600)
    stored = await room.stored("a_b")
    assert [(entry["kind"], entry["user_id"], entry["content"]) for entry in stored] == [
        ("memory_entry", "a_b", "The bus leaves at nine."),
        ("memory_entry", "a_b", "a_b likes tea and long walks."),
    ]
    await room.entries.erase("a_b")
    assert await room.stored("a_b") == []
    for table in ("entries", "counts", "sentences", "signatures", "unindexed", "postings", "users"):
        ((left,),) = await room.database.fetch(
            f"SELECT COUNT(*) FROM memory_{table} WHERE user_no = :user_no", {"user_no": LOOK_ALIKES.index("a_b") + 1}
        )
        assert left == 0, table
    for user in set(LOOK_ALIKES) - {"a_b"}:
        assert len(await room.stored(user)) == 2
    assert not (await room.save("a_b likes tea and long walks.", "a_b")).merged
