"""Text files in the encodings that people still send."""

import pytest

from memory_gateway.documents.plain import decode

CHINESE = "季度预算会议改到周四下午三点，请带上发票号码。"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (CHINESE, "utf-8"),
        (CHINESE, "utf-8-sig"),
        (CHINESE, "utf-16"),
        (CHINESE + "budget 2024-118 approved", "utf-16-le"),
        (CHINESE + "budget 2024-118 approved", "utf-16-be"),
        (CHINESE, "utf-32"),
        (CHINESE, "gb18030"),
        ("季度預算會議改到週四下午三點，請帶上發票號碼。", "big5"),
        ("会議は木曜日の午後三時に変更されました", "shift_jis"),
        ("회의가 목요일 오후 세 시로 변경되었습니다", "euc_kr"),
        ("Café au lait – naïve façade, 20 € für Müller", "cp1252"),
        ("Встреча перенесена на четверг", "cp1251"),
        ("", "utf-8"),
    ],
)
def test_is_read_as_it_was_written(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)) == text


def test_a_character_cut_at_the_end_is_dropped() -> None:
    assert decode("预算".encode()[:-1]) == "预"


def test_nul_is_dropped() -> None:
    assert decode(b"before\0after, and on it goes") == "beforeafter, and on it goes"


def test_noise_is_no_text() -> None:
    assert decode(bytes(range(256)) * 16) is None
