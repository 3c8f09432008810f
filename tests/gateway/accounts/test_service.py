import asyncio
from typing import Any

import pytest

from memory_gateway.gateway.accounts.schemas import NewUser, User
from memory_gateway.kit.errors import Conflict, InvalidInput, NotFound, Unauthorized
from tests.fakes.front_door import FrontDoor

LOOK_ALIKES = ("ann", "anna", "a_b", "axb")


async def lets_in(front: FrontDoor, user_id: str, user_key: str) -> bool:
    try:
        return await front.accounts.authenticate(user_id, user_key) == user_id
    except Unauthorized:
        return False


async def rows(front: FrontDoor, sql: str, **params: Any) -> list[tuple[Any, ...]]:
    return await front.database.fetch(sql, params)


async def test_a_new_user_comes_in_with_the_key_that_was_shown(front: FrontDoor) -> None:
    new_user = await front.accounts.create("ann")
    assert new_user == NewUser("ann", new_user.user_key, "2026-05-28T20:26:40.000Z")
    assert await lets_in(front, "ann", new_user.user_key)
    assert await front.accounts.exists("ann")


async def test_the_key_itself_is_nowhere_in_the_database(front: FrontDoor) -> None:
    key = (await front.accounts.create("ann")).user_key
    for table in ("users", "user_keys", "audit_log"):
        assert key not in str(await rows(front, f"SELECT * FROM {table}"))
        assert key[4:] not in str(await rows(front, f"SELECT * FROM {table}"))


async def test_every_key_opens_its_own_account_only(front: FrontDoor) -> None:
    keys = {user_id: (await front.accounts.create(user_id)).user_key for user_id in LOOK_ALIKES}
    opened = [(user, owner) for user in LOOK_ALIKES for owner, key in keys.items() if await lets_in(front, user, key)]
    assert opened == [(user, user) for user in LOOK_ALIKES]


@pytest.mark.parametrize("taken", ["ann", "Ann", "ANN"])
async def test_an_id_that_is_equal_after_case_folding_is_taken(front: FrontDoor, taken: str) -> None:
    key = (await front.accounts.create("ann")).user_key
    with pytest.raises(Conflict):
        await front.accounts.create(taken)
    assert [user.user_id for user in await front.accounts.list_users()] == ["ann"]
    assert await lets_in(front, "ann", key)


async def test_of_twenty_who_want_one_id_at_once_one_gets_it(front: FrontDoor) -> None:
    outcomes = await asyncio.gather(
        *(front.accounts.create(user_id) for user_id in ["Ann", "ann"] * 10), return_exceptions=True
    )
    assert sum(isinstance(outcome, NewUser) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 19


async def test_an_id_that_breaks_the_rule_is_refused(front: FrontDoor) -> None:
    with pytest.raises(InvalidInput):
        await front.accounts.create("../b")
    assert await front.accounts.list_users() == []


async def test_rotation_without_grace_stops_the_old_key_at_once(front: FrontDoor) -> None:
    old = (await front.accounts.create("ann")).user_key
    new = (await front.accounts.rotate("ann")).user_key
    assert [await lets_in(front, "ann", old), await lets_in(front, "ann", new)] == [False, True]
    assert await rows(front, "SELECT count(*) FROM user_keys") == [(1,)]


async def test_with_grace_the_old_key_lives_until_the_second_it_was_told(front: FrontDoor) -> None:
    old = (await front.accounts.create("ann")).user_key
    new = (await front.accounts.rotate("ann", 60)).user_key
    front.clock.forward(seconds=59.999)
    assert await lets_in(front, "ann", old)
    front.clock.forward(seconds=0.001)
    assert [await lets_in(front, "ann", old), await lets_in(front, "ann", new)] == [False, True]


async def test_a_later_rotation_never_prolongs_an_old_key(front: FrontDoor) -> None:
    first = (await front.accounts.create("ann")).user_key
    second = (await front.accounts.rotate("ann", 60)).user_key
    await front.accounts.rotate("ann", 3600)
    front.clock.forward(seconds=61)
    assert [await lets_in(front, "ann", first), await lets_in(front, "ann", second)] == [False, True]
    await front.accounts.rotate("ann")
    assert not await lets_in(front, "ann", second)


async def test_rotation_touches_no_other_user(front: FrontDoor) -> None:
    keys = {user_id: (await front.accounts.create(user_id)).user_key for user_id in LOOK_ALIKES}
    await front.accounts.rotate("ann")
    await front.accounts.rotate("a_b")
    assert [user_id for user_id, key in keys.items() if await lets_in(front, user_id, key)] == ["anna", "axb"]


@pytest.mark.parametrize("user_id", ["nobody", "Ann", "%", "a%", "../b", ""])
async def test_nobodys_key_cannot_be_rotated(front: FrontDoor, user_id: str) -> None:
    await front.accounts.create("ann")
    with pytest.raises(NotFound):
        await front.accounts.rotate(user_id)
    assert not await front.accounts.exists(user_id)
    assert await rows(front, "SELECT count(*) FROM user_keys") == [(1,)]


@pytest.mark.parametrize(
    ("user_id", "user_key"),
    [(None, None), ("ann", None), (None, "mgw_x"), ("ann", ""), ("ann", "\ud800"), ("\ud800", "x"), ("a\0", "x")],
)
async def test_odd_credentials_are_merely_wrong(front: FrontDoor, user_id: str | None, user_key: str | None) -> None:
    await front.accounts.create("ann")
    with pytest.raises(Unauthorized):
        await front.accounts.authenticate(user_id, user_key)


async def test_another_secret_opens_nothing(front: FrontDoor) -> None:
    key = (await front.accounts.create("ann")).user_key
    front.accounts._key_secret = b"another secret"
    assert not await lets_in(front, "ann", key)


async def test_users_are_listed_by_id_with_the_erased_ones(front: FrontDoor) -> None:
    for user_id in ("teo", "mira"):
        await front.accounts.create(user_id)
    front.clock.forward(seconds=1)
    await front.user_erasure.erase("teo")
    assert await front.accounts.list_users() == [
        User("mira", "2026-05-28T20:26:40.000Z"),
        User("teo", "2026-05-28T20:26:40.000Z", "2026-05-28T20:26:41.000Z"),
    ]
