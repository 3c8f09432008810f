"""Which of several turns comes first: who said it, when, whether it asks or answers, and what was deleted."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memory_gateway.engine.schemas import Caller, Message, Method
from tests.engine.conftest import Talk, hidden, open_talk
from tests.fakes.embedder import HashEmbedder

SAFE = "the safe opens with 4471"
PARTS = list(enumerate(("roof", "cellar", "kitchen", "garden", "stairs", "windows", "heating", "attic", "fence"), 1))


@pytest.fixture(params=["keyword", "hybrid", "agentic"])
def method(request: pytest.FixtureRequest) -> Method:
    """The methods that weigh words and features."""
    found: Method = request.param
    return found


@pytest.fixture
async def talk(tmp_path: Path) -> AsyncIterator[Talk]:
    """An engine with an embedder."""
    async with open_talk(tmp_path, HashEmbedder()) as opened:
        yield opened


def said(text: str, day: str, sender: str = "ann", name: str | None = None, minute: int = 0) -> Message:
    """At noon of the day, or some minutes later."""
    noon = datetime.fromisoformat(f"{day}T12:00:00").replace(tzinfo=UTC)
    time_ms = round(noon.timestamp() * 1000) + minute * 60_000
    return Message(sender_id=sender, role="user", timestamp=time_ms, content=text, sender_name=name)


async def remember(talk: Talk, *messages: Message) -> None:
    """Each message in a session of its own, in this order: among equals, the last comes first."""
    for number, message in enumerate(messages):
        await talk.add(message, session=f"chat:{number}")
    await embed(talk)


async def embed(talk: Talk) -> None:
    assert talk.engine._worker is not None
    await talk.engine._worker.catch_up()


async def order(talk: Talk, query: str, method: Method, **options: Any) -> list[str]:
    """The facts that answer, each without its time, in the order of the hits."""
    reply = await talk.search(query, method=method, **options)
    return [fact["content"].split("] ", 1)[1] for episode in reply.episodes for fact in episode["atomic_facts"]]


async def days(talk: Talk, query: str, method: Method) -> list[str]:
    """The days of the hits, month and day."""
    reply = await talk.search(query, method=method)
    return [episode["atomic_facts"][0]["content"][6:11] for episode in reply.episodes]


async def test_of_equal_words_those_of_the_one_named_come_first(talk: Talk, method: Method) -> None:
    await remember(
        talk,
        said("a red bicycle for Ann", "2026-03-05", "ben", "Ben Frost"),
        said("a red bicycle for Ben Frost", "2026-03-05", "ann", "Ann"),
    )
    ben, ann = "Ben Frost: a red bicycle for Ann", "Ann: a red bicycle for Ben Frost"
    assert await order(talk, "What did Ben say of a red bicycle?", method) == [ben, ann]
    assert await order(talk, "Ben Frost's red bicycle", method) == [ben, ann]
    assert await order(talk, "the red bicycle of Ann", method) == [ann, ben]


@pytest.mark.parametrize(
    "query", ["红茶 3月5日", "what about 红茶 on March 5", "红茶 on 5 March 2026", "2026年3月5日的红茶"]
)
async def test_what_was_said_on_a_named_day_comes_first_then_what_was_said_soon_after(
    talk: Talk, method: Method, query: str
) -> None:
    said_on = ("2026-03-05", "2026-03-07", "2026-01-02", "2026-05-05")
    await remember(talk, *(said("我们喝了红茶", day) for day in said_on))
    assert await days(talk, query, method) == ["03-05", "03-07", "05-05", "01-02"]


async def test_a_relative_day_is_counted_from_the_clock(talk: Talk, method: Method) -> None:
    await remember(talk, *(said("we drank tea", day) for day in ("2026-05-27", "2026-05-28", "2026-05-29")))
    talk.clock.forward(seconds=86_400)  # 29 May
    assert (await days(talk, "who drank tea yesterday", method))[0] == "05-28"
    assert (await days(talk, "who drank tea today", method))[0] == "05-29"
    talk.clock.forward(seconds=-86_400)
    assert (await days(talk, "who drank tea yesterday", method))[0] == "05-27"


@pytest.mark.parametrize("query", ["When did we paint the fence?", "how long ago did we paint the fence"])
async def test_a_question_for_a_time_prefers_the_turn_that_tells_one(talk: Talk, method: Method, query: str) -> None:
    await remember(
        talk, said("We painted the fence yesterday", "2026-03-05"), said("We painted the fence together", "2026-03-05")
    )
    assert await order(talk, query, method) == [
        "ann: We painted the fence yesterday",
        "ann: We painted the fence together",
    ]


async def test_a_question_that_asks_for_no_time_does_not(talk: Talk) -> None:
    await remember(
        talk, said("We painted the fence yesterday", "2026-03-05"), said("We painted the fence together", "2026-03-05")
    )
    assert (await order(talk, "Did we paint the fence?", "keyword"))[0] == "ann: We painted the fence together"


async def test_an_answer_comes_before_the_question_it_follows(talk: Talk, method: Method) -> None:
    await talk.add(
        said("I painted the fence, who helped me?", "2026-03-05", "ann"),
        said("I painted the fence, Carla helped me.", "2026-03-05", "ben", minute=1),
    )
    await embed(talk)
    assert await order(talk, "who helped paint the fence", method) == [
        "ben: I painted the fence, Carla helped me.",
        "ann: I painted the fence, who helped me?",
    ]


async def test_of_equal_words_those_that_tell_come_before_those_that_ask(talk: Talk, method: Method) -> None:
    told, asked = "Carla helped me paint the fence.", "Carla helped me paint the fence?"
    await remember(talk, said(told, "2026-03-05"), said(asked, "2026-03-05"))
    assert await order(talk, "who helped paint the fence", method) == [f"ann: {told}", f"ann: {asked}"]


async def test_what_follows_a_question_answers_it(talk: Talk) -> None:
    """Both turns beside the middle one have the same words: only one stands behind the question."""
    await talk.add(
        said("tea from Kyoto", "2026-03-05"),
        said("which one is it?", "2026-03-05", minute=1),
        said("from Kyoto tea", "2026-03-05", minute=2),
    )
    await talk.add(
        said("tea from Kyoto", "2026-03-05"),
        said("which one it is.", "2026-03-05", minute=1),
        said("from Kyoto tea", "2026-03-05", minute=2),
        session="chat:2",
    )
    scores = {
        (episode["session_id"], fact["content"].split(": ", 1)[1]): fact["score"]
        for episode in (await talk.search("Kyoto tea set")).episodes
        for fact in episode["atomic_facts"]
    }
    behind_question, behind_telling = scores["chat:1", "from Kyoto tea"], scores["chat:2", "from Kyoto tea"]
    assert behind_question > behind_telling


async def delete(talk: Talk, content: str) -> Caller:
    """The caller after the message was deleted."""
    messages = (await talk.search("x", filters={"session_id": "chat:1"})).unprocessed_messages
    (identifier,) = (message["id"] for message in messages if message["content"] == content)
    return hidden("unprocessed_message", identifier)


@pytest.mark.parametrize("found_by", ["vector", "hybrid", "agentic"])
async def test_the_turn_after_a_deleted_one_is_not_found_by_what_that_one_said(talk: Talk, found_by: Method) -> None:
    await talk.say(SAFE, "hm, okay, bye", "...")
    await embed(talk)
    assert "ann: hm, okay, bye" in await order(talk, SAFE, found_by, radius=0.62), "its vector holds both"
    caller = await delete(talk, SAFE)
    for query in (SAFE, "which code opens the safe", "4471"):
        assert await order(talk, query, found_by, caller=caller, radius=0.62) == []


@pytest.mark.parametrize("found_by", ["vector", "hybrid", "agentic"])
async def test_what_stands_beside_something_deleted_is_still_found_by_its_meaning(talk: Talk, found_by: Method) -> None:
    two_hours = 2 * 3_600_000
    walnut, dentist = talk.message("walnut for the worktop"), talk.message("my dentist is on mill street")
    later = msgspec.structs.replace(dentist, timestamp=walnut.timestamp + two_hours)
    await talk.add(walnut, later)
    await talk.say(SAFE, "see you in the garden", session="chat:2")
    await embed(talk)
    (episode,) = (await talk.search("walnut")).episodes
    gone = hidden("episode", episode["id"])
    assert "ann: my dentist is on mill street" in await order(talk, "dentists of mill streets", found_by, caller=gone)
    messages = (await talk.search("x", filters={"session_id": "chat:2"})).unprocessed_messages
    gone = hidden("unprocessed_message", messages[0]["id"])
    assert "ann: see you in the garden" in await order(talk, "seen in gardens", found_by, caller=gone), "the last one"


async def test_turns_near_a_deleted_one_have_the_meaning_that_they_have_without_it(tmp_path: Path) -> None:
    before, last = "the weather is fine", "see you at the opening of the safe house"

    async def scores(folder: Path, *texts: str) -> dict[str, float]:
        folder.mkdir()
        async with open_talk(folder, HashEmbedder()) as talk:
            await talk.say(*texts)
            await embed(talk)
            caller = await delete(talk, SAFE) if SAFE in texts else None
            (episode,) = (await talk.search("when is the safe opened", method="vector", caller=caller)).episodes
            return {fact["content"].split(": ", 1)[1]: fact["score"] for fact in episode["atomic_facts"]}

    found = await scores(tmp_path / "deleted", before, SAFE, "hm, okay, bye", last)
    assert set(found) == {before, "hm, okay, bye", last}
    assert found[before] == (await scores(tmp_path / "before", before))[before]
    assert found[last] == (await scores(tmp_path / "after", "hm, okay, bye", last))[last]


@pytest.mark.parametrize("query", ["Anna whereabouts", "What did Anna say?", "Tell me about Anna please"])
async def test_a_name_that_is_spoken_of_is_found_though_its_bearer_takes_part(talk: Talk, query: str) -> None:
    await talk.add(
        said("Anna moved to Oslo in the spring", "2026-03-05", "ben", "Ben"),
        said("noted", "2026-03-05", "anna", "Anna", minute=1),
    )
    assert "Ben: Anna moved to Oslo in the spring" in await order(talk, query, "keyword")


async def test_the_whole_text_of_a_long_message_is_an_exact_match(talk: Talk, method: Method) -> None:
    reports = [
        " ".join(
            f"In week {week} the {part} went as planned and cost {week * number} crowns." for number, part in PARTS
        )
        for week in range(8)
    ]
    for week, report in enumerate(reports):
        await talk.say(report, session=f"chat:{week}")
    await embed(talk)
    for week, report in enumerate(reports):
        episode = (await talk.search(report, method=method)).episodes[0]
        assert (episode["session_id"], episode["score"]) == (f"chat:{week}", 1.0)
    assert all(episode["score"] < 1 for episode in (await talk.search(reports[0][:500], method=method)).episodes)


async def test_vectors_of_other_dimensions_under_the_same_name_are_made_anew(tmp_path: Path) -> None:
    for dimensions in (64, 32):
        async with open_talk(tmp_path, HashEmbedder(dimensions)) as talk:
            if dimensions == 64:
                await talk.say("green tea from Uji")
            await embed(talk)
            assert await order(talk, "green teas of Uji", "vector") == ["ann: green tea from Uji"]
