"""The project's pages as the tests read them."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
_CODE_BLOCK = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^#{1,6} +(.+?)\s*$", re.MULTILINE)
_GENERATED = {".git", ".venv", ".cache", "__pycache__", "build", "dist", "data", ".hypothesis"}


def pages() -> list[Path]:
    """Every Markdown page for people."""
    return sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "src").rglob("*.md")])


def source_files() -> Iterator[Path]:
    """Every file that belongs to the project, as a clone has it."""
    for path in ROOT.rglob("*"):
        parts = path.relative_to(ROOT).parts
        if path.is_file() and not any(part in _GENERATED or part.endswith(("_cache", ".egg-info")) for part in parts):
            yield path


def prose(page: Path) -> str:
    """The page without its code blocks."""
    return _CODE_BLOCK.sub("", page.read_text("utf-8"))


def links(page: Path) -> list[str]:
    return [match[1] or match[2] for match in _LINK.finditer(prose(page))]


def anchors(page: Path) -> set[str]:
    """The fragments that the page's headings make, as GitHub writes them."""
    return {_slug(heading) for heading in _HEADING.findall(prose(page))}


def table_rows(page: Path) -> Iterator[list[str]]:
    """The cells of every table row, heads and rules left out."""
    lines = page.read_text("utf-8").splitlines()
    for position, line in enumerate(lines):
        following = lines[position + 1] if position + 1 < len(lines) else ""
        if line.startswith("| ") and not line.startswith("| ---") and not following.startswith("| ---"):
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


def _slug(heading: str) -> str:
    kept = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
    return kept.replace(" ", "-")
