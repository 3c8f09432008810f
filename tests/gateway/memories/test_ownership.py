import asyncio

import pytest

from memory_gateway.gateway.memories.found import Session
from memory_gateway.gateway.memories.ownership import Claim, Sessions
from memory_gateway.kit.errors import Forbidden
from memory_gateway.storage.sqlite import SqliteDatabase
from tests.fakes.clock import TurnedClock

CHAT = Session("default", "default", "chat:1")


@pytest.fixture
def clock() -> TurnedClock:
    return TurnedClock()


@pytest.fixture
def sessions(database: SqliteDatabase, clock: TurnedClock) -> Sessions:
    return Sessions(database, clock)


async def keep(database: SqliteDatabase, sessions: Sessions, claim: Claim) -> None:
    await database.write(lambda transaction: sessions.keep_in(transaction, claim))


async def test_the_first_writer_owns_a_session(database: SqliteDatabase, sessions: Sessions) -> None:
    assert await sessions.is_own("ann", CHAT) is None
    await keep(database, sessions, await sessions.claim("ann", CHAT))
    assert await sessions.is_own("ann", CHAT) is True
    for other in ("anna", "Ann", "a", "%", "an_"):
        assert await sessions.is_own(other, CHAT) is False
        with pytest.raises(Forbidden):
            await sessions.claim(other, CHAT)
    assert await sessions.claim("ann", CHAT) == Claim("ann", CHAT, settled=True)


async def test_a_session_is_owned_within_its_app_and_project(database: SqliteDatabase, sessions: Sessions) -> None:
    await keep(database, sessions, await sessions.claim("ann", CHAT))
    for session in (Session("shop", "default", "chat:1"), Session("default", "eu", "chat:1")):
        await keep(database, sessions, await sessions.claim("anna", session))
        assert await sessions.is_own("anna", session) is True
    assert await sessions.is_own("anna", Session("default", "default", "chat:_")) is None


async def test_a_claim_of_which_nothing_was_stored_is_dropped(sessions: Sessions) -> None:
    claim = await sessions.claim("ann", CHAT)
    with pytest.raises(Forbidden):
        await sessions.claim("anna", CHAT)
    await sessions.drop(claim)
    assert await sessions.is_own("ann", CHAT) is None
    assert (await sessions.claim("anna", CHAT)).user_id == "anna"


async def test_a_claim_stays_where_words_may_have_arrived(sessions: Sessions) -> None:
    """The first add was cut off; that a later one is refused says nothing of its words."""
    await sessions.claim("ann", CHAT)
    await sessions.drop(await sessions.claim("ann", CHAT))
    assert await sessions.is_own("ann", CHAT) is True


async def test_a_failed_add_does_not_drop_the_claim_of_another_add_under_way(
    database: SqliteDatabase, sessions: Sessions
) -> None:
    first, second = await sessions.claim("ann", CHAT), await sessions.claim("ann", CHAT)
    await sessions.drop(first)
    with pytest.raises(Forbidden):
        await sessions.claim("anna", CHAT)
    await keep(database, sessions, second)
    await sessions.drop(second)
    assert await sessions.is_own("ann", CHAT) is True


async def test_the_claim_of_a_dead_process_stays(sessions: Sessions, clock: TurnedClock) -> None:
    await sessions.claim("ann", CHAT)
    clock.forward(seconds=10 * 365 * 86_400)
    with pytest.raises(Forbidden):
        await sessions.claim("anna", CHAT)
    assert await sessions.is_own("ann", CHAT) is True


async def test_a_session_that_holds_words_never_changes_hands(
    database: SqliteDatabase, sessions: Sessions, clock: TurnedClock
) -> None:
    await keep(database, sessions, await sessions.claim("ann", CHAT))
    clock.forward(seconds=10 * 365 * 86_400)
    with pytest.raises(Forbidden):
        await sessions.claim("anna", CHAT)
    assert await sessions.is_own("ann", CHAT) is True


async def test_many_sessions_are_looked_up_at_once(database: SqliteDatabase, sessions: Sessions) -> None:
    for user_id, session_id in (("ann", "chat:1"), ("anna", "chat:2"), ("a_n", "chat:%")):
        await keep(database, sessions, await sessions.claim(user_id, Session("default", "default", session_id)))
    asked = ["chat:1", "chat:2", "chat:%", "chat:_", "resource:ann:r", "resource:anna:r"]
    assert await sessions.own("ann", "default", "default", asked) == {
        "chat:1": True,
        "chat:2": False,
        "chat:%": False,
        "resource:ann:r": True,
        "resource:anna:r": False,
    }
    assert await sessions.own("ann", "default", "eu", ["chat:1"]) == {}
    assert await sessions.own("ann", "default", "default", []) == {}


async def test_of_many_at_once_one_wins(sessions: Sessions) -> None:
    users = [f"user{number}" for number in range(20)]
    outcomes = await asyncio.gather(*(sessions.claim(user, CHAT) for user in users), return_exceptions=True)
    assert sum(isinstance(outcome, Claim) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, Forbidden) for outcome in outcomes) == 19


async def test_resource_sessions_belong_to_the_user_they_name(sessions: Sessions) -> None:
    def resource(name: str) -> Session:
        return Session("default", "default", name)

    assert await sessions.is_own("ann", resource("resource:ann:r1")) is True
    for other in ("resource:anna:r1", "resource:an:r1", "resource:ann", "resource:Ann:r1", "resource::ann:r1"):
        assert await sessions.is_own("ann", resource(other)) is False
