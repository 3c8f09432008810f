"""What the demo prints stays short, shows no key, and lines up."""

import json

import httpx
import pytest

from memory_gateway.demo.teller import Teller, clipped, compact, show_result, trimmed

RESULT = {
    "memory_type": "episode",
    "source_scope": "current_chat",
    "text": "年糕的\n化验单",
    "score": 0.5,
    "overridden": True,
    "raw": {"atomic_facts": [{"content": "肌酐\n偏高", "score": 0.5}, {"content": "二", "score": 0.4}]},
    "attachments": [{"type": "image", "name": "a.png", "internal_uri": "file:///a.png"}],
}


def test_a_text_is_cut_by_columns_where_wide_characters_take_two() -> None:
    assert clipped("abcdef", 4) == "abcd…"
    assert clipped("年糕的化验单", 4) == "年糕…"
    assert clipped("年糕", 4) == "年糕"


def test_keys_are_never_shown() -> None:
    assert trimmed({"user_id": "lin", "user_key": "mgw_secret"}) == {"user_id": "lin", "user_key": "…"}


def test_long_lists_say_how_much_is_missing() -> None:
    assert trimmed({"messages": [1, 2, 3, 4, 5]}) == {"messages": [1, 2, "… 3 more"]}


def test_json_is_folded_into_lines_that_fit_and_stays_whole() -> None:
    value = {f"field_{number}": "x" * 20 for number in range(20)}
    lines = compact(value).splitlines()
    assert len(lines) > 1
    assert max(map(len, lines)) <= 112
    assert json.loads("".join(lines)) == value


def test_a_result_is_shown_on_lines_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    show_result(1, RESULT)
    assert capsys.readouterr().out.splitlines() == [
        "   1. 0.50 episode · current_chat overridden",
        "      年糕的 化验单",
        "      “肌酐 偏高”",
        "      ↳ image a.png file:///a.png",
    ]


def _teller(status: int) -> Teller:
    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, json={"results": []})

    return Teller("http://gateway", httpx.MockTransport(answer))


def test_another_status_than_expected_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    with _teller(500) as teller:
        teller.call("GET", "/health", expect=200)
    assert teller.failures == ['GET /health answers 200, not 500: {"results":[]}']
    assert "NOT SO" in capsys.readouterr().out


def test_an_expectation_that_holds_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    with _teller(200) as teller:
        assert teller.search("x", user={"user_id": "lin", "user_key": "mgw_secret"}) == []
        teller.expect("nothing is found", holds=True)
    assert teller.failures == []
    printed = capsys.readouterr().out
    assert "✓ nothing is found" in printed
    assert "mgw_secret" not in printed
