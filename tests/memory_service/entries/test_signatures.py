import random

import numpy as np
import pytest

from memory_gateway.memory_service.entries.signatures import (
    LEVEL_BITS,
    RECORDS,
    Records,
    Table,
    level_of,
    levels_near,
    signature_of,
)
from memory_gateway.memory_service.entries.similarity import THRESHOLD, Bigrams, similarity


def some_set(chance: random.Random, size: int) -> Bigrams:
    return np.array(sorted(chance.sample(range(1 << 42), size)), dtype=np.uint64)


def close_to(chance: random.Random, base: Bigrams, changes: int) -> Bigrams:
    kept = chance.sample(base.tolist(), max(1, len(base) - changes))
    return np.unique(np.array(kept + chance.sample(range(1 << 42), chance.randint(0, changes)), dtype=np.uint64))


def line(level: int, entry_no: int, pairs: Bigrams) -> Records:
    record = np.zeros(1, dtype=RECORDS[level])
    record["entry"], record["size"], record["signature"] = entry_no, len(pairs), signature_of(pairs, level)
    return record


@pytest.mark.parametrize("size", [1, 2, 3, 30, 63, 64, 65, 86, 128, 129, 170, 256, 257, 300, 1500])
def test_no_alike_set_is_missed_and_bounds_hold(size: int) -> None:
    chance = random.Random(size)
    tables = [Table(level) for level in range(len(LEVEL_BITS))]
    sets: dict[int, Bigrams] = {}
    base = some_set(chance, size)
    for number in range(1, 120):
        changes = 0 if number == 1 else max(1, size // 5)
        one = close_to(chance, base, changes) if number % 2 else some_set(chance, chance.randint(1, 2 * size))
        sets[number] = one
        tables[level_of(len(one))].put(number, len(one), signature_of(one, level_of(len(one))))
    near = {
        candidate.entry_no: candidate.most
        for level in levels_near(size)
        for candidate in tables[level].near(size, signature_of(base, level))
    }
    exact = {number: similarity(base, one) for number, one in sets.items()}
    alike = {number for number, value in exact.items() if value >= THRESHOLD}
    assert alike
    assert alike <= near.keys()
    assert all(near[number] >= float(exact[number]) for number in near)
    # strangers are dropped: what is left is what shares a base
    assert all(number % 2 or size < 3 for number in near)


def test_a_table_holds_the_last_word_on_each_entry_in_whatever_parts_it_is_told() -> None:
    chance = random.Random(7)
    for part in (1, 3, 500):
        table = Table(0)
        truth: dict[int, Bigrams] = {}
        log = []
        for _ in range(400):
            number, pairs = chance.randint(1, 60), some_set(chance, chance.choice([0, 5, 20, 40]))
            log.append(line(0, number, pairs))
            truth[number] = pairs
        for start in range(0, len(log), part):
            table.apply(np.concatenate(log[start : start + part]))
        held = {int(record["entry"]): record for record in table.records()}
        expected = {number: pairs for number, pairs in truth.items() if len(pairs)}
        assert len(table) == len(expected)
        assert {number: int(record["size"]) for number, record in held.items()} == {
            number: len(pairs) for number, pairs in expected.items()
        }
        for number, pairs in expected.items():
            assert (held[number]["signature"] == signature_of(pairs, 0)).all()
            assert number in [near.entry_no for near in table.near(len(pairs), signature_of(pairs, 0))]


def test_what_is_struck_out_is_not_found_any_more() -> None:
    table, pairs = Table(0), some_set(random.Random(1), 20)
    table.put(1, 20, signature_of(pairs, 0))
    table.put(2, 20, signature_of(pairs, 0))
    table.strike(1)
    table.strike(3)
    assert [near.entry_no for near in table.near(20, signature_of(pairs, 0))] == [2]
    assert len(table) == 1
