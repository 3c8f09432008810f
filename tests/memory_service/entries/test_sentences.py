import pytest

from memory_gateway.memory_service.entries.sentences import (
    first_sentence,
    key_hash,
    sentence_key,
    sentence_keys,
    split_sentences,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?  Four", ["One.", "Two!", "Three?", "Four"]),
        ("Costs 1.5 at example.org, e.g.", ["Costs 1.5 at example.org, e.g."]),
        ("第一句。第二句！第三", ["第一句。", "第二句！", "第三"]),
        ("等等……好吗？！好。", ["等等……", "好吗？！", "好。"]),
        ("他说：“好。”然后走了。", ["他说：“好。”", "然后走了。"]),
        ('She said "go." Then left.', ['She said "go."', "Then left."]),
        ("first line\r\n\n  second line  ", ["first line", "second line"]),
        ("!!!", ["!!!"]),
        (" \n ", []),
    ],
)
def test_sentences_end_at_stops_and_lines(text: str, expected: list[str]) -> None:
    assert split_sentences(text) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [("Tea  at\tfive", " tea at five "), ("ＤＧＩＡ", "dgia"), ("caf\u00e9", "CAFE\u0301"), ("Straße", "STRASSE")],
)
def test_case_width_and_spacing_do_not_tell_sentences_apart(one: str, other: str) -> None:
    assert sentence_key(one) == sentence_key(other)


@pytest.mark.parametrize(("one", "other"), [("C", "C++"), ("5", "-5"), ("1.5", "15"), ("ab", "a b"), ("好", "好。")])
def test_every_symbol_tells_sentences_apart(one: str, other: str) -> None:
    assert sentence_key(one) != sentence_key(other)


def test_each_key_comes_once_and_hashes_fit_a_signed_column() -> None:
    keys = sentence_keys("Tea. TEA. Milk.")
    assert keys == ["tea.", "milk."]
    assert all(-(2**63) <= key_hash(key) < 2**63 for key in keys)
    assert key_hash("tea.") != key_hash("milk.")


@pytest.mark.parametrize(
    ("content", "summary"),
    [
        ("Likes tea. Hates milk.", "Likes tea."),
        ("爱喝茶。不喝奶。", "爱喝茶。"),
        ("\n\n second\nthird", "second"),
        ("x" * 300, "x" * 100),
        ("x" * 100, "x" * 100),
        ("x" * 98 + "e\u0301\u0301" + "y", "x" * 98),
        ("x" * 99 + "\U0001f468\u200d\U0001f469\u200d\U0001f467", "x" * 99),
        ("\U0001f1e9\U0001f1ea" * 60, "\U0001f1e9\U0001f1ea" * 50),
        ("e" + "\u0301" * 200, "e" + "\u0301" * 99),
    ],
)
def test_the_first_sentence_is_cut_between_visible_characters(content: str, summary: str) -> None:
    assert first_sentence(content) == summary
