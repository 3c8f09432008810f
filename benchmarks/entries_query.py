"""How long does a query take among 100,000 memories of one user?

Over HTTP, one connection: two Han characters, a Latin word, and both, each in at most 1 % of the entries, many of each
kind in turn. ``python -m benchmarks.entries_query --quick`` asks a fiftieth of the entries.
"""

import argparse
import json
import statistics
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise

from benchmarks.entries_store import USER, Wanted, copied_store, users_sentences
from benchmarks.load import Plan, Result, measure, request_bytes
from benchmarks.report import print_ratio, print_table
from benchmarks.servers import gateway

SIZES = (1_000, 100_000)
ROUNDS = 3
QUERIES = 100
PATH = "/api/v1/memories/query"
_MOST_QUERIES_A_SECOND = 3_000


def main(scale: float = 1.0, seconds: float = 3.0) -> None:
    """Print the medians of both stores; the goal is that of the large one."""
    sizes = [max(200, round(size * scale)) for size in SIZES]
    rows = []
    slowest = 0.0
    for size in sizes:
        with ExitStack() as stack:
            folder = stack.enter_context(copied_store(Wanted(size)))
            port = stack.enter_context(gateway(folder)).service_port
            for kind, words in telling_words(size).items():
                results = [measure(queries(port, words, seconds)).require(200) for _ in range(ROUNDS)]
                rows.append((f"{size:,}", kind, str(len(words)), *_shown(results)))
                slowest = max(slowest, statistics.median(result.p50_ms for result in results))
    print_table(
        f"A query over HTTP, one connection, medians of {ROUNDS} rounds",
        ("entries of the user", "of", "queries", "p50 ms", "p99 ms"),
        rows,
    )
    print_ratio("the slowest p50 in milliseconds", slowest, "at most 10")


def telling_words(size: int) -> dict[str, list[str]]:
    """The most frequent words that at most 1 % of the entries hold, by kind."""
    held: Counter[str] = Counter()
    for text in users_sentences(Wanted(size)):
        held.update(set(_pairs(text)) if not text.isascii() else set(text.rstrip(".").lower().split()))
    fitting = [word for word, count in held.most_common() if count <= size / 100]
    latin = [word for word in fitting if word.isascii() and len(word) > 3][:QUERIES]
    han = [word for word in fitting if not word.isascii()][:QUERIES]
    return {"two Han characters": han, "a Latin word": latin}


def queries(port: int, words: list[str], seconds: float) -> Plan:
    """Each word in turn, over and over."""
    bodies = [json.dumps({"user_id": USER, "query_text": word}).encode() for word in words]
    requests = [request_bytes("POST", PATH, {}, body) for body in bodies]
    repeats = round(_MOST_QUERIES_A_SECOND * (seconds + 0.5) / len(requests)) + 1
    return Plan(port, requests[0], connections=1, seconds=seconds, requests=tuple(requests * repeats))


def _pairs(text: str) -> Iterator[str]:
    return map("".join, pairwise(text.rstrip("。")))


def _shown(results: list[Result]) -> tuple[str, str]:
    p50 = statistics.median(result.p50_ms for result in results)
    p99 = statistics.median(result.p99_ms for result in results)
    return f"{p50:.2f}", f"{p99:.2f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fiftieth of the entries")
    main(*((0.02, 1.0) if parser.parse_args().quick else ()))
