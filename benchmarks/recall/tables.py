"""What a run found, as tables, and beside the goals."""

import statistics
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from benchmarks.recall import locomo
from benchmarks.recall.measure import BATCH, TOP_K, Measured
from benchmarks.recall.metrics import Answer, hit, recall, recall_within, reciprocal_rank, session_hit
from benchmarks.report import print_ratio, print_table

TOKEN_BUDGETS = (1_000, 2_000, 4_000)
_MEGA = 1_000_000

Answers = Mapping[str, Sequence[Answer]]


class Selection(Struct, frozen=True):
    """Some of the questions, with the words that say which."""

    name: str
    parts: tuple[str, ...]
    adversarial: bool = False

    def of(self, answers: Iterable[Answer]) -> list[Answer]:
        return [
            answer
            for answer in answers
            if answer.part in self.parts and (self.adversarial or answer.question.category != locomo.ADVERSARIAL)
        ]


HALVES = {"dev half": ("dev",), "test half": ("test",), "both halves": ("dev", "test")}
SELECTIONS = [
    Selection(f"{name}, {categories}", parts, adversarial)
    for categories, adversarial in (("categories 1-4", False), ("all categories", True))
    for name, parts in HALVES.items()
]
TEST = Selection("test half, categories 1-4", ("test",))
EVERYTHING = Selection("both halves, all categories", ("dev", "test"), adversarial=True)


def print_locomo(answers: Answers, parts: Sequence[str]) -> None:
    """Recall by half and category, and what it costs in tokens. Only halves that were asked."""
    for chosen in (each for each in SELECTIONS if set(each.parts) <= set(parts)):
        _print_recall(chosen, answers)
    _print_categories(answers, parts)
    _print_tokens(Selection(f"{parts[-1]} half, categories 1-4", (parts[-1],)), answers)


def _print_recall(chosen: Selection, answers: Answers) -> None:
    asked = {method: chosen.of(given) for method, given in answers.items()}
    rows = [
        (
            method,
            *(_percent(recall(given, k)) for k in (5, 10, 20)),
            _percent(reciprocal_rank(given)),
            *(_percent(session_hit(given, k)) for k in (5, 10)),
            f"{len(given):,}",
        )
        for method, given in asked.items()
    ]
    head = ("method", "recall@5", "@10", "@20", "MRR", "session hit@5", "@10", "questions")
    print_table(f"LoCoMo, {chosen.name}: turn recall, MRR and session hit, %", head, rows)


def _print_categories(answers: Answers, parts: Sequence[str]) -> None:
    rows = []
    for name, wanted in HALVES.items():
        if set(wanted) <= set(parts):
            chosen = Selection(name, wanted, adversarial=True)
            rows += [(f"{method}, {name}", *_by_category(chosen.of(given))) for method, given in answers.items()]
    head = ("method", *(f"{number} {name}" for number, name in locomo.CATEGORIES.items()))
    print_table("LoCoMo: turn recall@10 by category, %", head, rows)


def _by_category(given: Sequence[Answer]) -> list[str]:
    of_category = ([answer for answer in given if answer.question.category == number] for number in locomo.CATEGORIES)
    return [_percent(recall(answers, 10)) if answers else "-" for answers in of_category]


def _print_tokens(chosen: Selection, answers: Answers) -> None:
    asked = {method: chosen.of(given) for method, given in answers.items()}
    rows = [
        (
            method,
            f"{statistics.fmean(answer.reply_tokens for answer in given):,.0f}",
            f"{statistics.fmean(answer.ten_tokens for answer in given):,.0f}",
            *(_percent(recall_within(given, budget)) for budget in TOKEN_BUDGETS),
        )
        for method, given in asked.items()
    ]
    print_table(
        f"LoCoMo, {chosen.name}: tokens returned (characters / 4, a Han character 1) and recall within them, %",
        ("method", f"texts of {TOP_K} results", "first 10 turns", *(f"recall in {b:,}" for b in TOKEN_BUDGETS)),
        rows,
    )


def print_costs(measured: Measured) -> None:
    """Time and memory."""
    rows = [
        (method, *(f"{_percentile(given, share):.1f}" for share in (50, 95)), _megabytes(measured, method))
        for method, given in measured.answers.items()
    ]
    rows.append(("adding", "", "", _megabytes(measured, "adding")))
    print_table(
        f"LoCoMo: searches one after the other, top {TOP_K}, no query's vector cached; memory of the server afterwards",
        ("method", "p50 ms", "p95 ms", "MB"),
        rows,
    )
    added = measured.added
    embedded = added.seconds_until_embedded
    print_table(
        f"LoCoMo: adding in batches of {BATCH}, one client, vectors being made beside it",
        ("", "turns/s"),
        [
            ("acknowledged, full batches", f"{acknowledged_rate(measured):,.0f}"),
            ("acknowledged, with the short last batch of each session", f"{added.messages / added.seconds:,.0f}"),
            ("until embedded, flushes included", "-" if embedded is None else f"{added.messages / embedded:,.1f}"),
        ],
    )


def print_memorybank(answers: Answers) -> None:
    rows = [
        (
            method,
            _percent(recall(given, 5)),
            _percent(hit(given, 1)),
            _percent(reciprocal_rank(given)),
            f"{len(given):,}",
        )
        for method, given in answers.items()
    ]
    head = ("method", "recall@5", "hit@1", "MRR", "questions")
    print_table("MemoryBank-CN: recall of exchanges, %", head, rows)


def print_locomo_goals(measured: Measured, parts: Sequence[str]) -> None:
    answers = measured.answers
    test = {method: TEST.of(given) for method, given in answers.items() if "test" in parts}
    if hybrid := test.get("hybrid"):
        print_ratio(f"hybrid, {TEST.name}, turn recall@10", 100 * recall(hybrid, 10), "at least 83, better 86")
        print_ratio(f"hybrid, {TEST.name}, turn recall@5", 100 * recall(hybrid, 5), "at least 75, better 79")
        print_ratio(f"hybrid, {TEST.name}, MRR", 100 * reciprocal_rank(hybrid), "better 70")
    if keyword := test.get("keyword"):
        print_ratio(f"keyword, {TEST.name}, turn recall@10", 100 * recall(keyword, 10), "at least 75")
    if {"dev", "test"} <= set(parts) and (every := EVERYTHING.of(answers.get("hybrid", ()))):
        print_ratio(f"hybrid, {EVERYTHING.name}, turn recall@20", 100 * recall(every, 20), "at least 90")
        print_ratio(f"hybrid, {EVERYTHING.name}, session hit@5", 100 * session_hit(every, 5), "at least 96")
        print_ratio(f"hybrid, {EVERYTHING.name}, session hit@10", 100 * session_hit(every, 10), "at least 98.5")
    if measured.added.full_batches:
        print_ratio(f"turns/s acknowledged in batches of {BATCH}", acknowledged_rate(measured), "at least 2000")
    if seconds := measured.added.seconds_until_embedded:
        print_ratio("turns/s until embedded", measured.added.messages / seconds, "at least 20")
        print_ratio("MB of the server at most", max(measured.resident_bytes.values()) / _MEGA, "at most 464")


def print_memorybank_goals(answers: Answers) -> None:
    for method, goal in (("hybrid", "at least 96"), ("keyword", "at least 86")):
        if given := answers.get(method):
            print_ratio(f"{method}, MemoryBank-CN, recall@5", 100 * recall(given, 5), goal)


def acknowledged_rate(measured: Measured) -> float:
    added = measured.added
    return added.full_batches * BATCH / added.full_batch_seconds if added.full_batches else 0.0


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _percentile(given: Sequence[Answer], percent: int) -> float:
    times = sorted(answer.milliseconds for answer in given)
    return times[min(len(times) - 1, len(times) * percent // 100)]


def _megabytes(measured: Measured, work: str) -> str:
    return f"{measured.resident_bytes[work] / _MEGA:,.0f}"
