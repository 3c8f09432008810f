from fractions import Fraction

import pytest

from memory_gateway.memory_service.entries.similarity import THRESHOLD, bigrams, similarity


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("night", "nacht", Fraction(1, 7)),
        ("door code is 4471", "door code is 4477", Fraction(6, 7)),
        ("门禁码是4471", "门禁码是4477", Fraction(3, 4)),
        ("printer sits at 10.20.7.1", "printer sits at 10.20.9.1", Fraction(4, 5)),
        ("DGIA", "ｄｇｉａ", Fraction(1)),
        ("caf\u00e9 au lait", "CAFE\u0301 -- au, lait!", Fraction(1)),
        ("a", "A.", Fraction(1)),
        ("a", "ab", Fraction(0)),
        ("ab", "ba", Fraction(0)),
        ("aaa", "aa", Fraction(1)),
        ("कि", "की", Fraction(0)),
        ("👍 好", "好", Fraction(1)),
        ("abc", "👍", Fraction(0)),
    ],
)
def test_similarity_is_the_exact_share_of_common_bigrams(one: str, other: str, expected: Fraction) -> None:
    assert similarity(bigrams(one), bigrams(other)) == expected == similarity(bigrams(other), bigrams(one))


def test_a_text_without_letters_and_digits_has_no_bigrams() -> None:
    assert [len(bigrams(text)) for text in ("👍🎉", " -- ", "。", "")] == [0, 0, 0, 0]


def test_characters_beyond_the_basic_plane_are_told_apart() -> None:
    assert similarity(bigrams("𠀀𠀁𠀂"), bigrams("𠀀𠀁𠀃")) == Fraction(1, 3)


def test_three_quarters_are_enough() -> None:
    assert Fraction(3, 4) >= THRESHOLD > Fraction(2_999_999, 4_000_000)
