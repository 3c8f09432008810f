"""Adding and closing."""

from memory_gateway.engine.schemas import AddReply, ContentItem, FlushReply, Message
from tests.conformance.corpus import START, bot, user
from tests.conformance.world import World


async def test_an_add_counts_the_requests_messages(world: World) -> None:
    app = "conformance-count"
    assert await world.add("s", user("one", START), bot("two", START + 1), app=app) == AddReply(2, "accumulated")


async def test_a_flush_closes_what_there_is_and_then_nothing(world: World) -> None:
    app = "conformance-flush"
    await world.add("s", user("a note", START), app=app)
    assert await world.flush("s", app=app) == FlushReply("extracted")
    assert await world.flush("s", app=app) == FlushReply("no_extraction")
    assert await world.buffered("s", app=app) == []


async def test_an_unknown_session_has_nothing_to_close(world: World) -> None:
    assert await world.flush("never-seen", app="conformance-flush") == FlushReply("no_extraction")


async def test_another_projects_session_stays_open(world: World) -> None:
    app = "conformance-flush-place"
    await world.add("s", user("a note", START), app=app, project_id="p2")
    assert await world.flush("s", app=app) == FlushReply("no_extraction")


async def test_repeating_an_open_batch_changes_nothing(world: World) -> None:
    app = "conformance-repeat"
    batch = (user("one", START), bot("two", START + 1))
    assert await world.add("s", *batch, app=app) == AddReply(2, "accumulated")
    assert await world.add("s", *batch, app=app) == AddReply(2, "accumulated")
    assert [message["content"] for message in await world.buffered("s", app=app)] == ["one", "two"]


async def test_words_after_a_flush_become_an_episode_of_their_own(world: World) -> None:
    app = "conformance-second"
    await world.add("s", user("a note on tea", START), app=app)
    await world.flush("s", app=app)
    await world.add("s", user("a note on coffee", START + 60_000), app=app)
    await world.flush("s", app=app)
    reply = await world.until(lambda: world.get(app_id=app), lambda reply: reply.count == 2)
    newer, older = reply.episodes
    assert "coffee" in newer["episode"]
    assert "coffee" not in older["episode"]
    assert newer["id"] != older["id"]


async def test_one_text_item_is_its_text(world: World) -> None:
    app = "conformance-item"
    await world.add("s", Message("ann", "user", START, [ContentItem("text", text="a note")]), app=app)
    assert [message["content"] for message in await world.buffered("s", app=app)] == ["a note"]


async def test_several_items_come_back_with_every_key(world: World) -> None:
    app = "conformance-items"
    parts = [ContentItem("text", text="one"), ContentItem("text", text="two", extras={"k": "v"})]
    await world.add("s", Message("ann", "user", START, parts), app=app)
    (message,) = await world.buffered("s", app=app)
    unset = {"uri": None, "base64": None, "ext": None, "name": None}
    assert message["content"] == [
        {"type": "text", "text": "one", "extras": None, **unset},
        {"type": "text", "text": "two", "extras": {"k": "v"}, **unset},
    ]


async def test_an_agents_words_belong_to_no_user(world: World) -> None:
    assert (await world.get(user_id="bot")).count == 0
