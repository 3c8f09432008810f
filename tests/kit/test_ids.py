import re
import secrets

import pytest

from memory_gateway.kit.ids import OwnedIds, owner_no_in, shard_key, uuid7_id
from tests.fakes.clock import TurnedClock

MOST = 2**40 - 1


@pytest.mark.parametrize("owner_no", [0, 1, 4095, 2**28, 2**31, MOST - 1, MOST])
def test_an_id_says_whose_it_is_and_when_it_was_made(owner_no: int) -> None:
    clock = TurnedClock()
    made = OwnedIds(clock)(owner_no)
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", made)
    assert owner_no_in(made) == owner_no
    assert int(made.replace("-", "")[:12], 16) == clock()


def test_a_number_that_has_no_room_is_refused() -> None:
    for owner_no in (MOST + 1, -1):
        with pytest.raises(OverflowError):
            OwnedIds(TurnedClock())(owner_no)


def test_ids_of_one_owner_rise_within_a_millisecond_and_when_the_clock_goes_back() -> None:
    clock = TurnedClock()
    new_id = OwnedIds(clock)
    ids = [new_id(7) for _ in range(1000)]
    clock.forward(seconds=1)
    ids.append(new_id(7))
    clock.forward(seconds=-5)
    ids.append(new_id(7))
    assert ids == sorted(set(ids))


def test_what_has_no_more_room_in_a_millisecond_goes_into_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = TurnedClock()
    monkeypatch.setattr(secrets, "randbits", lambda bits: (1 << bits) - 1)  # each step the widest
    new_id = OwnedIds(clock)
    ids = [new_id(MOST) for _ in range(10_000)]
    assert ids == sorted(set(ids))
    assert {owner_no_in(made) for made in ids} == {MOST}
    assert int(ids[-1].replace("-", "")[:12], 16) == clock() + 1


def test_another_id_says_nothing() -> None:
    owned = OwnedIds(TurnedClock())(5)
    for other in ("", "x", uuid7_id(), owned.upper(), owned + "\n", owned[:-1], "8" * 36):
        assert owner_no_in(other) is None, other


def test_a_names_number_is_always_the_same_and_fits_into_an_id() -> None:
    assert shard_key("ann") == 271_880_970_702
    assert len({shard_key(name) for name in ("ann", "anna", "Ann", "a_b", "axb", "%", "张三")}) == 7
    assert all(0 <= shard_key(str(number)) <= MOST for number in range(1000))
