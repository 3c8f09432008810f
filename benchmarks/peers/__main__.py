"""Recall of other memory systems beside this engine's: the same turns, the same model, the same metric, in one run.

Every system gets the turns of one LoCoMo conversation as ``Speaker: text [caption]`` and is asked that conversation's
questions. Peers run in environments of their own, without a language model and without asking a model hub.
"""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from benchmarks import embedding_server
from benchmarks.peers.systems import PeerFailed, System, systems
from benchmarks.recall import locomo
from benchmarks.recall.conversations import Conversation
from benchmarks.recall.measure import server_settings
from benchmarks.recall.metrics import Answer, recall, reciprocal_rank
from benchmarks.report import Skipped, print_table

HEAD = ("", "recall@5", "recall@10", "MRR", "all: recall@5", "recall@10", "MRR", "questions")


def main(most: int | None) -> int:
    """Print a table for each half of LoCoMo, of its first ``most`` conversations; 1 when a system failed."""
    every = locomo.load()
    conversations = [one for part in ("dev", "test") for one in [c for c in every if c.part == part][:most]]
    settings = server_settings("local")
    questions = (asked.text for conversation in conversations for asked in conversation.questions)
    answered: dict[str, list[Answer]] = {}
    with embedding_server.serving(Path(settings["embedder_model"]), questions) as url:
        ended_well = [_answer(system, conversations, answered) for system in systems(settings, url)]
    for part in ("dev", "test"):
        _print(part, [one.user_id for one in conversations if one.part == part], answered)
    return 0 if all(ended_well) else 1


def _answer(system: System, conversations: Sequence[Conversation], answered: dict[str, list[Answer]]) -> bool:
    """Whether it answered or a package could not be had."""
    started = time.perf_counter()
    try:
        answered[system.label] = answers = system.answer(conversations)
    except Skipped as missing:
        print(f"  skipped: {system.label}: {missing}", flush=True)
        return True
    except PeerFailed as failed:
        print(f"  failed: {system.label}: {failed}", flush=True)
        return False
    seconds, each = time.perf_counter() - started, fmean(answer.milliseconds for answer in answers)
    print(f"  {system.label}: {len(answers):,} questions, {each:.0f} ms each, {seconds:.0f} s in all", flush=True)
    return True


def _print(part: str, users: Sequence[str], answered: Mapping[str, Sequence[Answer]]) -> None:
    rows = []
    for label, answers in answered.items():
        asked = [answer for answer in answers if answer.part == part]
        telling = [answer for answer in asked if answer.question.category != locomo.ADVERSARIAL]
        rows.append((label, *_percents(telling), *_percents(asked), f"{len(telling):,}, {len(asked):,}"))
    if rows:
        print_table(f"LoCoMo, {part} half ({', '.join(users)}): turns, categories 1-4, then all five, %", HEAD, rows)


def _percents(asked: Sequence[Answer]) -> tuple[str, ...]:
    return tuple(f"{100 * share:.1f}" for share in (recall(asked, 5), recall(asked, 10), reciprocal_rank(asked)))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks.peers", description=__doc__.partition("\n")[0])
    parser.add_argument("--conversations", type=int, metavar="N", help="only the first N of each half")
    return parser.parse_args()


if __name__ == "__main__":
    try:
        sys.exit(main(_arguments().conversations))
    except Skipped as missing:
        print(f"skipped: {missing}")
