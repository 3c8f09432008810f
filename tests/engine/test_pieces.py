"""Long texts are cut into pieces: none too long, nothing lost, lines kept."""

from hypothesis import given
from hypothesis import strategies as st

from memory_gateway.engine.pieces import PIECE_CHARS, split_text

TEXTS = st.text(alphabet=st.sampled_from("ab 。.!\n报，"), max_size=3000)


@given(TEXTS)
def test_pieces_are_short_and_lose_nothing_but_white_space(text: str) -> None:
    parts = split_text(text)
    assert all(0 < len(part) <= PIECE_CHARS for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())


def test_a_short_text_is_one_piece_with_its_lines() -> None:
    assert split_text("  # Tern\n\n- one. Two.\n- three ") == ["# Tern\n\n- one. Two.\n- three"]


def test_a_long_text_is_cut_at_sentence_ends_and_a_long_sentence_between_words() -> None:
    sentences = [f"Sentence {number} has its words." for number in range(60)]
    assert all(part.endswith("words.") for part in split_text(" ".join(sentences)))
    words = split_text("word " * 500)
    assert all(set(part.split()) == {"word"} for part in words)
