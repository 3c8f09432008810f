"""Users whose ids look alike never see, merge or lose anything of each other."""

from tests.fakes.entries import LOOK_ALIKES, Room

FACTS = dict(zip(LOOK_ALIKES, (f"My number is {word}" for word in "一二三四五六七八"), strict=True))


async def test_each_sees_exactly_one(room: Room, small_parts: None) -> None:
    for user, fact in FACTS.items():
        await room.say(fact, user, category="personal_info")
    for user, fact in FACTS.items():
        assert await room.listed(user) == [fact]
        assert await room.found("number", user) == [fact]
        assert await room.found("", user) == [fact]
        assert await room.entries.categories(user) == {"personal_info": 1}
        assert [entry.content for entry in await room.entries.stated_facts(user)] == [fact]
        assert await room.entries.consolidate(user) == 0
        assert await room.entries.decay(user) == (0, 0)
        assert [entry["content"] for entry in await room.stored(user)] == [fact]
    for stranger in ("an", "annn", "ANN", "a%b", "_", "", "%%"):
        assert await room.stored(stranger) == []


async def test_a_frequent_word_of_others_is_not_found(room: Room, small_parts: None) -> None:
    for number in range(10):
        for user in LOOK_ALIKES[1:]:
            await room.say(f"{'零一二三四五六七八九'[number] * 4} falcon", user)
    await room.say("no bird of prey here")
    assert await room.query("falcon") == ([], 0)
