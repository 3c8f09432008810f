"""``python -m benchmarks [NAME...]``: run them all, or those named, one after the other."""

import importlib
import platform
import sys
import time

import psutil

from benchmarks.report import Skipped

NAMES = (
    "startup",
    "writes",
    "list_resources",
    "search_scale",
    "search_owner",
    "entries_create",
    "entries_query",
    "entries_consolidate",
    "entries_neighbours",
    "service_throughput",
    "everos_live",
    "postgres",
)


def main(chosen: list[str]) -> int:
    """0 when every benchmark ran or said why it could not."""
    if unknown := set(chosen) - set(NAMES):
        print(f"no such benchmark: {min(unknown)}; there are {', '.join(NAMES)}")
        return 2
    print(
        f"Python {platform.python_version()} on {platform.system()} {platform.machine()}, "
        f"{psutil.cpu_count()} cores, {psutil.virtual_memory().total >> 30} GiB"
    )
    for name in chosen or NAMES:
        _run(name)
    return 0


def _run(name: str) -> None:
    started = time.perf_counter()
    print(f"\n== {name}", flush=True)
    try:
        importlib.import_module(f"benchmarks.{name}").main()
    except Skipped as missing:
        print(f"  skipped: {missing}")
    except ModuleNotFoundError as missing:
        if missing.name and missing.name.startswith(("benchmarks", "memory_gateway")):
            raise
        print(f"  skipped: {missing.name} is not installed; make setup installs it")
    else:
        print(f"  ({time.perf_counter() - started:.0f} s)")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
