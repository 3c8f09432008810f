"""When two texts are the same, and what it costs to say so."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_gateway.kit.text import collapse, fold, fold_name, normalised

marks = st.text(st.sampled_from("a b\u0301\u0323\u0307\u05b0\u3099é王ﷺßİ"), max_size=30)


@given(marks | st.text(max_size=40), st.sampled_from(["NFC", "NFD", "NFKC"]))
def test_texts_of_any_language_are_normalised_as_unicode_says(text: str, form: str) -> None:
    assert normalised(text, form) == unicodedata.normalize(form, text)  # type: ignore[arg-type]  # a form at random


@given(st.text(max_size=40))
def test_folding_is_nfkc_and_casefold_and_done_once_for_all(text: str) -> None:
    once = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    assert fold(text) == once


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC"])
def test_a_run_of_very_many_marks_is_joined_in_pieces_and_none_is_lost(form: str) -> None:
    text = "a" + "\u0301\u0323" * 20_000 + "b"
    found = normalised(text, form)  # type: ignore[arg-type]  # as above
    assert max(len(part) for part in found.split("\u034f")) <= 33
    apart = normalised(found, "NFD")
    assert [apart.count(mark) for mark in "a\u0301\u0323b"] == [1, 20_000, 20_000, 1]


def test_every_white_space_collapses() -> None:
    spaces = [chr(code) for code in range(0x110000) if chr(code).isspace()]
    assert {collapse(f"{space}a{space}b{space}{space}c{space}") for space in spaces} == {"a b c"}
    assert (collapse("a\x00b"), collapse("\u200b"), collapse("  "), collapse("")) == ("a\x00b", "\u200b", "", "")


def test_an_ascii_name_folds_as_any_other() -> None:
    ascii_ = "".join(map(chr, range(128)))
    assert fold_name(ascii_) == fold_name(ascii_ + "é")[:-1] == ascii_.casefold()
