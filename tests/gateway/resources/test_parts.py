"""How a text file is cut, where the upstream never splits a message."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_gateway.gateway.resources import parts
from memory_gateway.gateway.resources.parts import PART_CHARS, PARTS_AT_ONCE, Parts, goes_at_once, read_parts
from memory_gateway.gateway.resources.schemas import Resource


def read(folder: Path, content: str | bytes) -> Parts | None:
    path = folder / "notes.txt"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_parts(path)


def texts(folder: Path, content: str) -> tuple[str, ...]:
    found = read(folder, content)
    assert found is not None
    return found.texts


@given(st.lists(st.sampled_from(["a" * 700, "word ", "。", "\n", "\n\n", "句子", ". ", "b" * 9_000]), max_size=60))
def test_no_part_is_too_long_and_nothing_but_space_is_lost(pieces: list[str]) -> None:
    text = "".join(pieces)
    found = parts._split(text)
    assert all(part and len(part) <= PART_CHARS for part in found)
    assert "".join("".join(found).split()) == "".join(text.split())
    assert len(found) <= 2 * len(text) // PART_CHARS + 1


def test_what_goes_at_once_is_never_more_than_one_request_holds(tmp_path: Path) -> None:
    longest = PART_CHARS * PARTS_AT_ONCE // 2
    text = ("x" * (PART_CHARS // 2) + "\n\n") * PARTS_AT_ONCE
    assert len(texts(tmp_path, text[:longest])) <= PARTS_AT_ONCE
    resource = Resource("r", "", "n", None, "doc", "text/plain", longest, "", "", "", "", "stored", None, "", None)
    assert goes_at_once(resource)


@pytest.mark.parametrize("end", ["\n\n", "\n", "。", ". ", " "])
def test_a_part_ends_where_the_text_does_if_it_can(tmp_path: Path, end: str) -> None:
    first, second = texts(tmp_path, "x" * 5_000 + end + "y" * 5_000)
    assert (first, second) == (("x" * 5_000 + end).strip(), "y" * 5_000)


def test_a_paragraph_is_a_better_end_than_a_later_line(tmp_path: Path) -> None:
    first, _ = texts(tmp_path, "x" * 5_000 + "\n\n" + "y" * 1_000 + "\n" + "z" * 5_000)
    assert first == "x" * 5_000


@pytest.mark.parametrize("content", [b"", b" \n\t ", bytes(range(256)) * 100], ids=["empty", "blank", "no text"])
def test_what_is_no_text_has_no_parts(tmp_path: Path, content: bytes) -> None:
    assert read(tmp_path, content) is None


def test_other_encodings_are_read(tmp_path: Path) -> None:
    found = read(tmp_path, ("茶在厨房。" * 2_000).encode("utf-16"))
    assert found is not None
    assert found.texts[0].startswith("茶在厨房。")


@pytest.mark.parametrize(("length", "truncated"), [(2_000_000, False), (2_000_001, True), (9_000_000, True)])
def test_of_a_text_at_most_two_million_characters_are_sent(tmp_path: Path, length: int, truncated: bool) -> None:
    found = read(tmp_path, "x" * length)
    assert found is not None
    assert (sum(map(len, found.texts)), found.truncated) == (2_000_000, truncated)
