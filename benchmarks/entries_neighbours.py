"""Do other users' memories make those of one user slower?

100,000 entries of one user alone, and the same among 900,000 of 900 others, written in turns with theirs: creates and
queries over HTTP, one connection, both stores in turns; consolidation in process.
``python -m benchmarks.entries_neighbours --quick`` does it with a fiftieth of the entries.
"""

import argparse
import statistics
from contextlib import ExitStack

from benchmarks.entries_consolidate import ONE_IN, run_on
from benchmarks.entries_create import creates
from benchmarks.entries_query import queries, telling_words
from benchmarks.entries_store import Wanted, copied_store, sentences
from benchmarks.load import measure
from benchmarks.report import print_ratio, print_table
from benchmarks.servers import gateway

OWN, STRANGERS = 100_000, 900_000
ROUNDS = 3
GOAL = "at most 1.2"


def main(scale: float = 1.0, seconds: float = 3.0) -> None:
    """Print each call alone and in company, and the ratios."""
    own, strangers = round(OWN * scale), round(STRANGERS * scale)
    stores = {"alone": Wanted(own, copies=ONE_IN), "in company": Wanted(own, strangers, ONE_IN)}
    times = _request_times(stores, own, seconds)
    times["consolidation"] = {name: 1000 * run_on(wanted)[0] for name, wanted in stores.items()}
    print_table(
        f"{own:,} entries of one user, alone and with {strangers:,} of others",
        ("call", *(f"{name}, p50 ms" for name in stores)),
        [(call, *(f"{one:,.2f}" for one in measured.values())) for call, measured in times.items()],
    )
    for call, measured in times.items():
        print_ratio(f"{call}, in company against alone", measured["in company"] / measured["alone"], GOAL)


def _request_times(stores: dict[str, Wanted], own: int, seconds: float) -> dict[str, dict[str, float]]:
    """For each call the median over the rounds, by store."""
    fresh, words = sentences(99), telling_words(own)
    times: dict[str, dict[str, list[float]]] = {}
    with ExitStack() as stack:
        ports = {}
        for name, wanted in stores.items():
            folder = stack.enter_context(copied_store(wanted))
            ports[name] = stack.enter_context(gateway(folder)).service_port
        for _ in range(ROUNDS):
            for name, port in ports.items():
                plans = {f"query, {kind}": queries(port, some, seconds) for kind, some in words.items()}
                for call, plan in {"create": creates(port, fresh, seconds), **plans}.items():
                    p50 = measure(plan).require(200, 201).p50_ms
                    times.setdefault(call, {}).setdefault(name, []).append(p50)
    return {call: {name: statistics.median(all_) for name, all_ in by.items()} for call, by in times.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fiftieth of the entries")
    main(*((0.02, 1.0) if parser.parse_args().quick else ()))
