"""How long from the start of the program to its first answer, and how much memory does it hold when idle?"""

import statistics
import time
from pathlib import Path

from benchmarks.report import print_ratio, print_table
from benchmarks.servers import gateway, resident_bytes, work_folder

MIB = 1 << 20
SETTLE_SECONDS = 3.0


def main(rounds: int = 5) -> None:
    """Print start times of warm starts, and memory, with and without the embedding model."""
    with work_folder() as folder:
        first, _ = _start(folder, embedder="none")
        starts = [_start(folder, embedder="none") for _ in range(rounds)]
        modelled = _start(folder, embedder="auto")
    warm = statistics.median(seconds for seconds, _ in starts)
    memory = statistics.median(mebibytes for _, mebibytes in starts)
    print_table(
        "Start to first answered request, and memory of the idle server",
        ("", "seconds", "MiB"),
        [
            ("first start (makes the database)", f"{first:.2f}", ""),
            (f"warm start, median of {rounds}", f"{warm:.2f}", f"{memory:.0f}"),
            ("with a local embedding model (loaded at first use)", f"{modelled[0]:.2f}", f"{modelled[1]:.0f}"),
        ],
    )
    print_ratio("seconds of a warm start", warm, "under 2")
    print_ratio("MiB of an idle server without the embedding model", memory, "under 150")


def _start(folder: Path, embedder: str) -> tuple[float, float]:
    """Seconds until ``GET /health`` was answered; MiB resident, children included, after some idle seconds."""
    started = time.perf_counter()
    with gateway(folder, embedder=embedder) as server:
        seconds = time.perf_counter() - started
        time.sleep(SETTLE_SECONDS)
        return seconds, resident_bytes(server) / MIB


if __name__ == "__main__":
    main()
