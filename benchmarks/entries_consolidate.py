"""How long does a consolidation take, and how does that grow?

10,000 and 100,000 entries of one user, of which one in a hundred nearly repeats the one before it; in process, on a
copy of the store. ``python -m benchmarks.entries_consolidate --quick`` takes a fiftieth of the entries.
"""

import argparse
import asyncio
import math
import time
from pathlib import Path

from benchmarks.entries_store import USER, Wanted, copied_store, open_entries
from benchmarks.report import print_ratio, print_table

SIZES = (10_000, 100_000)
ONE_IN = 100


def main(scale: float = 1.0) -> None:
    """Print the times and the power of the growth."""
    sizes = [round(size * scale) for size in SIZES]
    runs = {size: run_on(Wanted(size, copies=ONE_IN)) for size in sizes}
    print_table(
        f"Consolidation, one in {ONE_IN} entries nearly repeated",
        ("entries", "seconds", "merged", "a second run merges"),
        [(f"{size:,}", f"{seconds:.2f}", f"{merged:,}", str(again)) for size, (seconds, merged, again) in runs.items()],
    )
    (few, (quick, *_)), (many, (slow, *_)) = runs.items()
    print_ratio("growth: time is entries to the power of", math.log(slow / quick) / math.log(many / few), "at most 2")
    print_ratio(f"seconds for {many:,} entries", slow, "at most 60")


def run_on(wanted: Wanted) -> tuple[float, int, int]:
    """Seconds, how many entries were merged, and how many by a second run."""
    with copied_store(wanted) as folder:
        return asyncio.run(_consolidated(folder))


async def _consolidated(folder: Path) -> tuple[float, int, int]:
    async with open_entries(folder) as entries:
        started = time.perf_counter()
        merged = await entries.consolidate(USER)
        seconds = time.perf_counter() - started
        if merged == 0:
            raise AssertionError("the store holds entries that nearly repeat others, and none was merged")
        return seconds, merged, await entries.consolidate(USER)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fiftieth of the entries")
    main(*((0.02,) if parser.parse_args().quick else ()))
