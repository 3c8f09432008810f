"""Does a create get slower when a user has a hundred times as many memories?

Over HTTP, one connection, every text new and unlike all others, on stores of 1,000 and of 100,000 entries in turn; and
next to it what comparing with every entry would take. ``python -m benchmarks.entries_create --quick`` does it with a
fiftieth of the entries.
"""

import argparse
import json
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice, pairwise

from benchmarks.entries_store import USER, Wanted, copied_store, sentences, users_sentences
from benchmarks.load import Plan, Result, measure, request_bytes
from benchmarks.report import print_ratio, print_table
from benchmarks.servers import gateway

SMALL, LARGE = 1_000, 100_000
PATH = "/api/v1/memories"
ROUNDS = 3
_MOST_CREATES_A_SECOND = 4_000
_TWIN_CREATES = 5


def main(scale: float = 1.0, seconds: float = 3.0) -> None:
    """Print the medians and the two ratios."""
    small, large = max(20, round(SMALL * scale)), round(LARGE * scale)
    fresh = sentences(99)
    times: dict[int, list[Result]] = {small: [], large: []}
    with ExitStack() as stack:
        ports = {size: _serve(stack, size) for size in times}
        for _ in range(ROUNDS):
            for size, port in ports.items():
                times[size].append(measure(creates(port, fresh, seconds)).require(201))
    twin_ms = _twin_ms(large)
    p50 = {size: statistics.median(result.p50_ms for result in results) for size, results in times.items()}
    p99 = {size: statistics.median(result.p99_ms for result in results) for size, results in times.items()}
    print_table(
        f"A create over HTTP, one connection, medians of {ROUNDS} rounds",
        ("entries of the user", "p50 ms", "p99 ms"),
        [
            *((f"{size:,}", f"{p50[size]:.2f}", f"{p99[size]:.2f}") for size in times),
            (f"{large:,}, comparing with each", f"{twin_ms:.0f}", ""),
        ],
    )
    print_ratio(f"{large:,} entries against {small:,}", p50[large] / p50[small], "at most 2")
    print_ratio("comparing with each against the service", twin_ms / p50[large], "at least 50")


def _serve(stack: ExitStack, size: int) -> int:
    folder = stack.enter_context(copied_store(Wanted(size)))
    return stack.enter_context(gateway(folder)).service_port


def creates(port: int, fresh: Iterator[str], seconds: float) -> Plan:
    """Each text once."""
    texts = islice(fresh, round(_MOST_CREATES_A_SECOND * (seconds + 0.5)))
    bodies = (json.dumps({"user_id": USER, "content": text}).encode() for text in texts)
    requests = tuple(request_bytes("POST", PATH, {}, body) for body in bodies)
    return Plan(port, requests[0], connections=1, seconds=seconds, requests=requests)


def _twin_ms(size: int) -> float:
    """The decision alone, without HTTP and database: the sets of all entries are at hand, each is compared."""
    known = [_bigrams(text) for text in users_sentences(Wanted(size))]
    times = []
    for text in islice(sentences(98), _TWIN_CREATES):
        started = time.perf_counter()
        new = _bigrams(text)
        max((len(new & one) / len(new | one), -number) for number, one in enumerate(known))
        times.append(1000 * (time.perf_counter() - started))
    return statistics.median(times)


_interned: dict[str, str] = {}


def _bigrams(text: str) -> set[str]:
    normal = "".join(character for character in text.casefold() if character.isalnum())
    return {_interned.setdefault(pair, pair) for pair in map("".join, pairwise(normal))}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fiftieth of the entries")
    main(*((0.02, 1.0) if parser.parse_args().quick else ()))
