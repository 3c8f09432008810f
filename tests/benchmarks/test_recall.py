"""The recall benchmark reads its data, replies and ranks as it says."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchmarks.recall import locomo, memorybank
from benchmarks.recall.__main__ import Options, main
from benchmarks.recall.conversations import FOLDER_VARIABLE, Conversation, Question, token_estimate, unit_tokens
from benchmarks.recall.metrics import (
    Answer,
    Verdict,
    hit,
    recall,
    recall_within,
    reciprocal_rank,
    session_hit,
    verdict,
)
from benchmarks.recall.ranking import Fact, Item, Origins, Result, ranked_units
from benchmarks.recall.tables import EVERYTHING, TEST

EIGHT_MAY = 1_683_554_160_000  # 2023-05-08 13:56 UTC
MINUTE = 60_000


def sample() -> dict[str, Any]:
    """In the shape of LoCoMo, its faults included; the words are our own."""
    return {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ann",
            "speaker_b": "Bo",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {
                    "speaker": "Ann",
                    "dia_id": "D1:1",
                    "text": "Look at this!",
                    "blip_caption": "a red kite",
                    "query": "x",
                },
                {"speaker": "Bo", "dia_id": "D1:2", "text": "Did you\n\n[make] it?"},
            ],
            "session_10_date_time": "12:05 am on 1 June, 2023",
            "session_10": [{"speaker": "Bo", "dia_id": "D10:1", "text": "Bye."}],
            "session_2_date_time": "9:00 am on 9 May, 2023",
            "session_2": [{"speaker": "Ann", "dia_id": "D2:1", "text": "I sold the kite."}],
            "session_11_date_time": "9:00 am on 2 June, 2023",
        },
        "qa": [
            {"question": "What did Ann show?", "evidence": ["D1:1"], "category": 4},
            {"question": "What became of it?", "evidence": ["D:2:01; D1:1 D1:2", "D1:1"], "category": 1},
            {"question": "Why?", "evidence": ["D10:19", "D"], "category": 3},
            {"question": "Who?", "evidence": [], "category": 3},
            {"question": "Where did Bo fly it?", "evidence": ["D10:01"], "category": 5},
        ],
        "event_summary": "never read",
    }


@pytest.fixture
def ann_and_bo() -> Conversation:
    return locomo.conversation(sample(), 5)


def test_sessions_come_in_order_of_number_and_a_date_alone_is_none(ann_and_bo: Conversation) -> None:
    assert [(message.session_id, message.sender_id, message.unit) for message in ann_and_bo.messages] == [
        ("conv-1:s1", "Ann", 0),
        ("conv-1:s1", "Bo", 1),
        ("conv-1:s2", "Ann", 2),
        ("conv-1:s10", "Bo", 3),
    ]


def test_a_turn_is_its_text_and_its_picture_s_caption_a_minute_after_the_one_before(ann_and_bo: Conversation) -> None:
    first, second, *_, last = ann_and_bo.messages
    assert (first.text, first.timestamp) == ("Look at this! [a red kite]", EIGHT_MAY)
    assert second.timestamp == EIGHT_MAY + MINUTE
    assert last.line == "[2023-06-01 Thu 00:05] Bo: Bye."


def test_evidence_is_repaired_and_a_question_without_any_is_dropped(ann_and_bo: Conversation) -> None:
    assert ann_and_bo.questions == (
        Question("What did Ann show?", (0,), 4),
        Question("What became of it?", (2, 0, 1), 1),
        Question("Where did Bo fly it?", (3,), 5),
    )


def test_the_first_five_conversations_are_for_tuning() -> None:
    assert [locomo.conversation(sample(), number).part for number in (0, 4, 5, 9)] == ["dev", "dev", "test", "test"]


def test_a_chinese_chat_is_exchanges_in_order_of_date() -> None:
    history = {
        "2023-05-01": [{"query": "我买了风筝。", "response": "真好！"}],
        "2023-04-30": [{"query": "你好", "response": "你好，林。"}, {"query": "天气？", "response": "晴。"}],
    }
    found = memorybank.conversation(3, "林", history, ["问一", "问二"], {"1": [2, 2]})
    assert [(message.session_id[-5:], message.unit, message.text) for message in found.messages] == [
        ("04-30", 0, "你好"),
        ("04-30", 0, "你好，林。"),
        ("04-30", 1, "天气？"),
        ("04-30", 1, "晴。"),
        ("05-01", 2, "我买了风筝。"),
        ("05-01", 2, "真好！"),
    ]
    assert [(message.sender_id, message.sender_name, message.role) for message in found.messages[:2]] == [
        (found.user_id, "林", "user"),
        ("AI", "AI", "assistant"),
    ]
    assert [message.moment for message in found.messages[1:4]] == [
        "2023-04-30 Sun 09:01",
        "2023-04-30 Sun 09:02",
        "2023-04-30 Sun 09:03",
    ]
    assert found.questions == (Question("问二", (2,)),)


def test_missing_data_are_said_and_are_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    main(Options(json=tmp_path / "answers.json"))
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  skipped: ")]
    assert [line.split()[1] for line in lines] == ["locomo/locomo10.json", "memorybank-cn/memory_bank_cn.json"]
    assert msgspec.json.decode((tmp_path / "answers.json").read_bytes()) == []


def episode(session_id: str, *lines: str, facts: tuple[tuple[str, float], ...] = ()) -> Result:
    scored = [Fact(content, score) for content, score in facts]
    return Result(session_id, "shown", Item("\n".join(lines), scored))


KITE = "[2023-05-08 Mon 13:56] Ann: Look at this! [a red kite]"
MADE = "[2023-05-08 Mon 13:57] Bo: Did you\n\n  [make] it?"
SOLD = "[2023-05-09 Tue 09:00] Ann: I sold the kite."
BYE = "[2023-06-01 Thu 00:05] Bo: Bye."


def test_facts_of_all_episodes_rank_by_score_and_other_lines_follow_by_episode(ann_and_bo: Conversation) -> None:
    results = [
        episode("conv-1:s1", KITE, MADE, facts=((MADE, 0.5),)),
        episode("conv-1:s10", BYE),
        episode("conv-1:s2", SOLD, facts=((SOLD, 0.9),)),
    ]
    assert ranked_units(results, Origins(ann_and_bo)) == [2, 1, 0, 3]


def test_equal_scores_keep_the_order_of_the_reply(ann_and_bo: Conversation) -> None:
    results = [
        episode("conv-1:s2", SOLD, facts=((SOLD, 0.5),)),
        episode("conv-1:s1", facts=((MADE, 0.5), (KITE, 0.5))),
    ]
    assert ranked_units(results, Origins(ann_and_bo)) == [2, 1, 0]


def test_what_is_no_episode_has_no_rank(ann_and_bo: Conversation) -> None:
    profile = Result(None, "Ann flies kites", Item())
    assert ranked_units([profile, episode("conv-1:s2", SOLD)], Origins(ann_and_bo)) == [2]


def test_a_piece_of_a_long_turn_is_that_turn_once(ann_and_bo: Conversation) -> None:
    pieces = ("[2023-05-08 Mon 13:56] Ann: Look at", "[2023-05-08 Mon 13:56] Ann: this! [a red kite]")
    results = [episode("conv-1:s1", facts=((pieces[1], 0.9), (MADE, 0.8), (pieces[0], 0.7)))]
    assert ranked_units(results, Origins(ann_and_bo)) == [0, 1]


@pytest.mark.parametrize(
    "line",
    [
        "[2023-05-08 Mon 13:56] Bo: Look at this! [a red kite]",
        "[2023-05-08 Mon 13:56] Ann: I sold the kite.",
        "[2023-05-09 Tue 09:00] Ann: I sold the kite.",
        "I sold the kite.",
    ],
    ids=["another speaker", "other words", "another session", "no line"],
)
def test_a_line_that_nobody_said_ends_the_run(ann_and_bo: Conversation, line: str) -> None:
    with pytest.raises(AssertionError, match="nobody said this"):
        Origins(ann_and_bo).unit("conv-1:s1", line)


def judged(ranking: list[int], evidence: tuple[int, ...]) -> Verdict:
    return verdict(ranking, evidence, {0: "a", 1: "a", 2: "b", 3: "c"}, {0: 10.0, 1: 20.0, 2: 30.0, 3: 40.0})


def test_evidence_is_found_by_rank_session_and_tokens() -> None:
    assert judged([1, 0, 3, 2], (2, 1)) == Verdict((4, 1), 1, (100.0, 20.0))
    assert judged([1, 0, 3, 2], (2,)) == Verdict((4,), 3, (100.0,))
    assert judged([1, 0], (3, 0)) == Verdict((None, 2), 1, (None, 30.0))
    assert judged([1, 0], (3,)) == Verdict((None,), None, (None,))


def answers(*found: tuple[list[int], tuple[int, ...]], category: int = 1) -> list[Answer]:
    return [
        Answer("conv-1", "test", "hybrid", Question("?", evidence, category), judged(ranking, evidence), 0.0, 0.0, 0.0)
        for ranking, evidence in found
    ]


def test_the_metrics_are_means_over_questions() -> None:
    given = answers(([1, 0, 3, 2], (2, 1)), ([1, 0], (3,)), ([1, 0, 3], (3, 0)))
    assert [recall(given, k) for k in (1, 2, 3, 4)] == pytest.approx([0.5 / 3, 1 / 3, 1.5 / 3, 2 / 3])
    assert [hit(given, k) for k in (1, 2)] == pytest.approx([1 / 3, 2 / 3])
    assert reciprocal_rank(given) == pytest.approx((1 + 0 + 0.5) / 3)
    assert [session_hit(given, k) for k in (1, 2)] == pytest.approx([2 / 3, 2 / 3])
    assert [recall_within(given, tokens) for tokens in (19, 20, 30, 70, 100)] == pytest.approx(
        [0, 0.5 / 3, 1 / 3, 1.5 / 3, 2 / 3]
    )


def test_questions_that_name_the_wrong_speaker_count_only_where_all_are_asked_for() -> None:
    given = [*answers(([0], (0,))), *answers(([0], (0,)), category=locomo.ADVERSARIAL)]
    assert (len(TEST.of(given)), len(EVERYTHING.of(given))) == (1, 2)


def test_tokens_are_a_quarter_of_latin_characters_and_each_han_character(ann_and_bo: Conversation) -> None:
    assert token_estimate("kite 风筝。") == (4 + 1 + 1) / 4 + 2
    assert unit_tokens(ann_and_bo.messages)[3] == len(BYE) / 4
