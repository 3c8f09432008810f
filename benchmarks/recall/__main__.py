"""Does a search find the turns that answer a question? LoCoMo and MemoryBank-CN through the HTTP API of a real server.

One user a conversation, one chat a session, one message a turn, with the time of the session and one minute a turn
(the data tell no times of turns); captions of pictures are indexed, in brackets. Every question is asked once by each
method in all of its user's memory, top_k 50. Weights may be tuned with --dev-only; the test half is for reporting.

The data sets are not part of the project. They are looked for in ``../shared/benchmarks``, or in the folder that
BENCHMARK_DATA names: ``locomo/locomo10.json`` and ``memorybank-cn/``.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from benchmarks.recall import locomo, memorybank
from benchmarks.recall.conversations import Conversation
from benchmarks.recall.measure import Measured, measure, server_settings
from benchmarks.recall.metrics import Answer
from benchmarks.recall.tables import (
    print_costs,
    print_locomo,
    print_locomo_goals,
    print_memorybank,
    print_memorybank_goals,
)
from benchmarks.report import Skipped

METHODS = ("keyword", "vector", "hybrid", "agentic")


class Options(Struct, frozen=True):
    """``conversations``: so many of each half, and so many people; None for all."""

    data_sets: tuple[str, ...] = (locomo.NAME, memorybank.NAME)
    methods: tuple[str, ...] = METHODS
    embedder: str = "local"
    conversations: int | None = None
    dev_only: bool = False
    json: Path | None = None


def main(options: Options) -> None:
    """Print the tables of the data sets that are there."""
    runs: dict[str, Callable[[Options], Measured]] = {locomo.NAME: run_locomo, memorybank.NAME: run_memorybank}
    asked: list[Answer] = []
    for name in options.data_sets:
        started = time.perf_counter()
        print(f"\n== {name}, embedder {options.embedder}", flush=True)
        try:
            measured = runs[name](options)
        except Skipped as missing:
            print(f"  skipped: {missing}")
        else:
            print(f"  ({time.perf_counter() - started:.0f} s)")
            asked += [answer for given in measured.answers.values() for answer in given]
    if options.json is not None:
        options.json.write_bytes(msgspec.json.encode(asked))


def run_locomo(options: Options) -> Measured:
    conversations = locomo.load()
    parts = ("dev",) if options.dev_only else ("dev", "test")
    chosen = [each for part in parts for each in _first([c for c in conversations if c.part == part], options)]
    measured = _measured(chosen, options, "conversations of each half")
    print_locomo(measured.answers, parts)
    print_costs(measured)
    print()
    print_locomo_goals(measured, parts)
    return measured


def run_memorybank(options: Options) -> Measured:
    measured = _measured(_first(memorybank.load(), options), options, "people")
    print_memorybank(measured.answers)
    print()
    print_memorybank_goals(measured.answers)
    return measured


def _first(conversations: Sequence[Conversation], options: Options) -> Sequence[Conversation]:
    return conversations[: options.conversations]


def _measured(conversations: Sequence[Conversation], options: Options, of_what: str) -> Measured:
    if options.conversations is not None:
        print(f"  only the first {options.conversations} {of_what}: the figures are not comparable")
    return measure(conversations, options.methods, server_settings(options.embedder))


def _options() -> Options:
    parser = argparse.ArgumentParser("python -m benchmarks.recall", description=__doc__.partition("\n")[0])
    parser.add_argument("--data-sets", help=f"comma-separated, of {', '.join(Options().data_sets)}")
    parser.add_argument("--methods", help=f"comma-separated, of {', '.join(METHODS)}")
    parser.add_argument("--embedder", choices=("local", "none"), default="local")
    parser.add_argument("--conversations", type=int, metavar="N", help="only the first N of each half, and N people")
    parser.add_argument("--dev-only", action="store_true", help="only the half of LoCoMo that weights are tuned on")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was found of each question")
    given = parser.parse_args()
    methods = _chosen(parser, given.methods, METHODS)
    if given.embedder == "none":
        methods = tuple(method for method in methods if method != "vector")
    return Options(
        data_sets=_chosen(parser, given.data_sets, Options().data_sets),
        methods=methods,
        embedder=given.embedder,
        conversations=given.conversations,
        dev_only=given.dev_only,
        json=given.json,
    )


def _chosen(parser: argparse.ArgumentParser, given: str | None, known: tuple[str, ...]) -> tuple[str, ...]:
    chosen = tuple(given.split(",")) if given else known
    if unknown := set(chosen) - set(known):
        parser.error(f"{min(unknown)!r} is none of {', '.join(known)}")
    return chosen


if __name__ == "__main__":
    main(_options())
