import random
from collections.abc import Sequence
from functools import partial
from itertools import combinations

import pytest

from memory_gateway.memory_service.entries.matching import Matcher
from memory_gateway.memory_service.entries.nearest import Nearest
from memory_gateway.memory_service.entries.owners import Owner, open_owner
from memory_gateway.memory_service.entries.signatures import Near
from memory_gateway.memory_service.entries.stored import Digest, digest_of
from memory_gateway.storage.port import Transaction
from tests.fakes.entries import Room

TEXT = "abcdefghijklmnop"


class Guessing(Nearest):
    """Names what it is told to name, and remembers nothing else."""

    def __init__(self, near: Sequence[Near]) -> None:
        super().__init__()
        self.named = list(near)

    async def near(self, transaction: Transaction, owner: Owner, digest: Digest) -> list[Near]:
        return self.named


@pytest.mark.parametrize(
    "near",
    [
        [Near(1.0, 3), Near(15 / 16, 2), Near(15 / 16, 1)],
        [Near(1.0, 3), Near(1.0, 2), Near(15 / 16, 1)],
        [Near(1.0, 1), Near(1.0, 2), Near(15 / 16, 3)],
    ],
)
async def test_bounds_end_the_search_only_where_nothing_as_alike_and_older_can_follow(
    room: Room, near: list[Near]
) -> None:
    for start, last in (("一" * 5, "x"), ("二" * 5, "y"), ("三" * 5, "z")):
        await room.change((await room.say(start)).id, content=f"{TEXT} {last}")

    async def work(transaction: Transaction) -> tuple[int, float]:
        owner = await open_owner(transaction, "ann")
        matcher = Matcher(transaction, owner, Guessing(near), "2026-05-28T20:26:40.000Z")
        found = await matcher.absorber(TEXT, digest_of(TEXT))
        assert found is not None
        return found.entry.entry_no, float(found.similarity)

    assert await room.database.read(work) == (1, 15 / 16)


async def test_what_cannot_be_better_is_not_read(room: Room) -> None:
    await room.say(f"{TEXT} x")

    async def work(transaction: Transaction) -> int | None:
        owner = await open_owner(transaction, "ann")
        # there is no entry 2: reading it would be a fault
        guessing = Guessing([Near(15 / 16, 1), Near(0.8, 2)])
        found = await Matcher(transaction, owner, guessing, "2026").absorber(TEXT, digest_of(TEXT))
        return None if found is None else found.entry.entry_no

    assert await room.database.read(work) == 1


async def test_of_many_that_hold_some_sentences_the_oldest_that_holds_all_is_found(room: Room) -> None:
    chance = random.Random(3)
    sentences = ["Tea is good.", "下雨了就不去。", "The moon is far.", "Yes!", "42."]
    held: list[set[str]] = []
    for number in range(60):
        entry = await room.say(f"{number} {chance.getrandbits(200):x}")
        held.append(set(chance.sample(sentences, chance.randint(0, 3))))
        await room.change(entry.id, content=" ".join([f"{number} {chance.getrandbits(200):x}.", *held[-1]]))

    async def holder(transaction: Transaction, text: str) -> int | None:
        matcher = Matcher(transaction, await open_owner(transaction, "ann"), Guessing([]), "2026")
        found = await matcher.absorber(text, digest_of(text))
        return None if found is None else found.entry.entry_no

    for size in range(1, 6):
        for asked in combinations(sentences, size):
            text = " ".join(asked)
            expected = next((number for number, has in enumerate(held, 1) if has.issuperset(asked)), None)
            assert await room.database.read(partial(holder, text=text)) == expected
