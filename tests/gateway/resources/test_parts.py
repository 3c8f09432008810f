"""How a long text is cut, where the upstream never splits a message."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_gateway.gateway.resources.parts import PART_CHARS, parts_of


@given(st.lists(st.sampled_from(["a" * 700, "word ", "。", "\n", "\n\n", "句子", ". ", "b" * 9_000]), max_size=60))
def test_no_part_is_too_long_and_nothing_but_space_is_lost(pieces: list[str]) -> None:
    text = "".join(pieces)
    found = parts_of(text)
    assert all(part and len(part) <= PART_CHARS for part in found)
    assert "".join("".join(found).split()) == "".join(text.split())
    assert len(found) <= 2 * len(text) // PART_CHARS + 1


@pytest.mark.parametrize("end", ["\n\n", "\n", "。", ". ", " "])
def test_a_part_ends_where_the_text_does_if_it_can(end: str) -> None:
    assert parts_of("x" * 5_000 + end + "y" * 5_000) == (("x" * 5_000 + end).strip(), "y" * 5_000)


def test_a_paragraph_is_a_better_end_than_a_later_line() -> None:
    first, _ = parts_of("x" * 5_000 + "\n\n" + "y" * 1_000 + "\n" + "z" * 5_000)
    assert first == "x" * 5_000


@pytest.mark.parametrize("text", ["", " \n\t "], ids=["empty", "blank"])
def test_what_says_nothing_has_no_parts(text: str) -> None:
    assert parts_of(text) == ()
