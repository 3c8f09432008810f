import random
import re
from typing import Any

import pytest

from memory_gateway.kit.errors import InvalidInput
from memory_gateway.kit.text import fold
from memory_gateway.memory_service.entries import querying
from tests.fakes.entries import Room


def scan_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """No term is rare enough for the index."""
    monkeypatch.setattr(querying, "_LEAST_VERIFIED", -1)
    monkeypatch.setattr(querying, "_VERIFYING_COST", -1)


@pytest.fixture
def scans_only(monkeypatch: pytest.MonkeyPatch) -> None:
    scan_only(monkeypatch)


SHORT_AND_GLUED = ["每天看早报", "设备放在C盘", "重跑gen-itgc后再提交", "資料備份完成"]


@pytest.mark.parametrize(
    ("query", "content"),
    [
        ("早报", "每天看早报"),
        ("设备", "设备放在C盘"),
        ("C盘", "设备放在C盘"),
        ("c盘", "设备放在C盘"),
        ("itgc", "重跑gen-itgc后再提交"),
        ("備份", "資料備份完成"),
        ("报", "每天看早报"),
        ("ＩＴＧＣ", "重跑gen-itgc后再提交"),
        ("提交 GEN", "重跑gen-itgc后再提交"),
    ],
)
@pytest.mark.parametrize("indexed", [True, False])
async def test_short_and_glued_words_find_their_text_as_written(
    room: Room, request: pytest.FixtureRequest, query: str, content: str, indexed: bool
) -> None:
    if indexed:
        request.getfixturevalue("small_parts")
    for text in SHORT_AND_GLUED:
        await room.say(text)
    assert await room.found(query) == [content]


@pytest.mark.parametrize(
    "query",
    [
        "memory:safe",
        'say "hi',
        "foo AND",
        "(py",
        "pre-edit",
        "it's",
        "*",
        "NEAR(",
        "%",
        "_",
        "\\",
        "🎉",
        "C++",
        "'; --",
    ],
)
@pytest.mark.parametrize("indexed", [True, False])
async def test_signs_are_plain_characters(
    room: Room, request: pytest.FixtureRequest, query: str, indexed: bool
) -> None:
    if indexed:
        request.getfixturevalue("small_parts")
    texts = [f"before {query} after", "nothing of the kind", "每天看早报", "a third, unlike the others"]
    for text in texts:
        await room.say(text)
    assert await room.found(query) == texts[:1]


async def test_a_long_query_and_a_blank_one_are_answered(room: Room) -> None:
    text = " ".join(f"word{number}" for number in range(800))
    await room.say(text)
    await room.say("每天看早报")
    assert await room.found(text) == [text]
    assert await room.found("x" * 60_000) == []
    assert await room.found("x" * 5_000 + "%") == []
    assert await room.found(" \n ") == await room.found("") == ["每天看早报", text]


async def test_a_term_longer_than_a_pattern_is_compared_to_its_end(room: Room, scans_only: None) -> None:
    await room.say("a" * 2000 + "b")
    await room.change((await room.say("x")).id, content="a" * 2001)
    assert await room.found("a" * 2000 + "b") == ["a" * 2000 + "b"]


async def test_every_term_must_stand_in_content_summary_or_a_keyword(room: Room) -> None:
    await room.say("The bus leaves at nine.", summary="Fahrplan", keywords=["交通", "Öffi"])
    for query in ("bus fahrplan", "öffi BUS", "交通 nine", "fahr plan"):
        assert await room.found(query) == ["The bus leaves at nine."]
    for query in ("bus train", "nineteen", "fahrplan\u3000zug"):
        assert await room.found(query) == []


async def test_the_most_important_come_first_then_the_newest(room: Room) -> None:
    for text, importance, priority in (("tea old", 5, 9), ("tea vital 茶", 9, 0), ("tea fresh and green", 5, 0)):
        await room.say(text, importance=importance, priority=priority)
    for query in ("tea", ""):
        assert await room.found(query) == ["tea vital 茶", "tea fresh and green", "tea old"]


async def test_equal_contents_are_shown_and_counted_once(room: Room) -> None:
    texts = ("The bus leaves at nine.", "每天看早报", "A third, unlike the others.")
    one, two, three = [await room.say(text, importance=4 + at) for at, text in enumerate(texts)]
    await room.change(two.id, content="THE  bus leaves at nine. ")
    await room.change(three.id, content="The bus leaves at nine, C++.")
    found, total = await room.query("bus")
    assert ([entry.id for entry in found], total) == ([three.id, two.id], 2)
    assert (await room.query("bus", limit=1))[1] == 2
    await room.entries.delete(two.id)
    assert [entry.id for entry in (await room.query("bus"))[0]] == [three.id, one.id]


async def test_a_query_is_narrowed_by_category_importance_and_limit(room: Room) -> None:
    for at, text in enumerate(("tea at dawn", "tea: 每天早上", "more tea for the guests", "no tea, but water")):
        await room.say(text, importance=at + 2, category="event" if at % 2 else "task")
    assert await room.found("tea", category="event") == ["no tea, but water", "tea: 每天早上"]
    assert await room.found("tea", min_importance=4) == ["no tea, but water", "more tea for the guests"]
    found, total = await room.query("tea", limit=3, min_importance=3)
    assert (len(found), total) == (3, 3)
    found, total = await room.query("tea", limit=1, category="task")
    assert (len(found), total) == (1, 2)


async def test_the_default_limit_is_ten(room: Room) -> None:
    for number in range(12):
        await room.say(f"tea {'abcdefghijkl'[number] * 12}")
    found, total = await room.query("tea")
    assert (len(found), total) == (10, 12)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"query": "\0"}, "query_text"),
        ({"query": "\ud800"}, "query_text"),
        ({"query": " ".join(map(str, range(1_001)))}, "query_text"),
        ({"query": "x", "limit": 0}, "limit"),
    ],
)
async def test_a_bad_query_is_refused(room: Room, fields: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        await room.query(**fields)
    assert refused.value.field == field


@pytest.mark.parametrize("query", ["a\u0007b", "zq\u001by", "\u0007", "code a\u0007b"])
async def test_control_characters_are_found_by_index_and_by_scan(room: Room, small_parts: None, query: str) -> None:
    await room.say("pager code a\u0007b zq\u001by end")
    for number in range(9):
        await room.say(f"{number} {'abcdefghi'[number] * 12}")
    assert [entry.content for entry in (await room.query(query))[0]] == ["pager code a\u0007b zq\u001by end"]


async def test_index_and_scan_find_the_same(room: Room, small_parts: None, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(5)
    words = ["tea", "茶", "早报", "itgc", "falcon", "C盘", "x", "éclair", "🎉", "10.20"]
    for number in range(60):
        text = f"{number:02} " + chance.choice(["", " "]).join(chance.sample(words, 3))
        entry = await room.say(text, importance=chance.randint(1, 3))
        if chance.random() < 0.3:
            await room.change(entry.id, content=f"{text} {chance.choice(words)}")
        if chance.random() < 0.1:
            await room.entries.delete(entry.id)
    queries = [*words, "tea 茶", "alc", "报i", "0", "茶茶", "falconx", "nothing"]
    answers = [await room.query(query, limit=100) for query in queries]
    scan_only(monkeypatch)
    assert [await room.query(query, limit=100) for query in queries] == answers
    assert sum(total for _, total in answers) > 100


async def test_the_index_does_not_grow_with_changes_of_the_same_entries(room: Room, small_parts: None) -> None:
    entries = [await room.say(text) for text in ("The bus leaves at nine.", "每天看早报", "green tea", "七七八八")]
    for number in range(25):
        for at, entry in enumerate(entries):
            await room.change(entry.id, content=f"{number} falcons {'甲乙丙丁'[at]}")
    owner = await room.database.fetch_one("SELECT indexed_count FROM memory_users WHERE user_id = 'ann'")
    size = await room.database.fetch_one("SELECT SUM(LENGTH(postings)) FROM memory_postings")
    assert owner is not None
    assert size is not None
    assert owner[0] <= 2 * 4 + 4  # twice what is alive, and the garbage that is let lie
    assert size[0] <= 8 * 12 * owner[0]  # no entry has more than twelve grams of eight bytes
    assert sorted(await room.found("24 falcons")) == [f"24 falcons {sign}" for sign in sorted("甲乙丙丁")]
    assert await room.found("23") == []


def test_folded_text_has_no_capitals_that_like_would_level() -> None:
    assert re.search("[A-Z]", "".join(fold(chr(code)) for code in range(0x110000))) is None
