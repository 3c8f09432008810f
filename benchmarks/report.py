"""How a benchmark speaks: a title, a table, and one line with the ratio that counts."""

import unicodedata
from collections.abc import Sequence


class Skipped(Exception):
    """Something that the benchmark needs is not there; the message says what."""


def print_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns aligned by display width; the first to the left, the others to the right."""
    widths = [max(_width(row[column]) for row in (head, *rows)) for column in range(len(head))]
    print(f"\n{title}")
    for row in (head, ["-" * width for width in widths], *rows):
        first, *rest = (_padded(cell, width, left=index == 0) for index, (cell, width) in _columns(row, widths))
        print("  " + "  ".join((first, *rest)).rstrip())


def print_ratio(what: str, ratio: float, goal: str) -> None:
    """The one number of the table, with what it should be."""
    print(f"  => {what}: {ratio:.2f} (goal: {goal})", flush=True)


def _columns(row: Sequence[str], widths: Sequence[int]) -> list[tuple[int, tuple[str, int]]]:
    return list(enumerate(zip(row, widths, strict=True)))


def _padded(cell: str, width: int, *, left: bool) -> str:
    gap = " " * (width - _width(cell))
    return cell + gap if left else gap + cell


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
