"""What EverOS has still to do, read in the ledgers that it keeps on its own disk: it has no call that tells.

``/health`` counts what waits for the index. Between an extraction and the file it writes, and between the file and its
place in that queue, nothing is counted there; on a busy machine these gaps are long.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

# A finished one may have failed, and then there is a next attempt to come.
_UNFINISHED_RUNS = """
SELECT strategy_name FROM run_record r WHERE status = 'running' OR (status = 'failed' AND NOT EXISTS (
  SELECT 1 FROM run_record n
  WHERE n.event_id = r.event_id AND n.strategy_name = r.strategy_name AND n.attempt > r.attempt))
"""
_WAITING_RUNS = "SELECT id FROM apscheduler_jobs WHERE id NOT LIKE 'cron::%' AND id NOT LIKE 'idle::%'"
_INDEXED = "SELECT md_path, mtime FROM md_change_state WHERE status = 'done'"


def unfinished(root: Path) -> list[str]:
    """Extractions that wait or run, and files whose last state is not in the index. Empty: everything can be found."""
    ledgers = root / ".index" / "sqlite"
    return [
        *(f"run {run} waits" for (run,) in _rows(ledgers / "ome.aps.db", _WAITING_RUNS)),
        *(f"{strategy} runs" for (strategy,) in _rows(ledgers / "ome.db", _UNFINISHED_RUNS)),
        *_not_indexed(root, dict(_rows(ledgers / "system.db", _INDEXED))),
    ]


def _not_indexed(root: Path, indexed: dict[str, float]) -> list[str]:
    apps = (path for path in root.iterdir() if path.is_dir() and not path.name.startswith("."))
    names = (path.relative_to(root).as_posix() for app in apps for path in app.rglob("*.md"))
    return [f"{name} is not in the index" for name in names if indexed.get(name) != (root / name).stat().st_mtime]


def _rows(ledger: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(f"{ledger.as_uri()}?mode=ro", uri=True, timeout=30)) as connection:
        return connection.execute(sql).fetchall()
