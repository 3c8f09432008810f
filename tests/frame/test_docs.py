"""The pages say what the program does."""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import memory_gateway
from memory_gateway.gateway.errors import _CODES
from memory_gateway.kit.errors import MemoryGatewayError
from memory_gateway.settings import Settings
from tests.frame.pages import DOCS, ROOT, anchors, links, pages, table_rows

OTHER_FACE = "memory_gateway.memory_service"  # has an envelope and a page of its own


def _shown(default: object) -> str:
    if default is None:
        return "unset"
    if default == ():
        return "empty"
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def test_the_settings_page_lists_every_setting_with_its_default() -> None:
    listed = {row[0]: row[1] for row in table_rows(DOCS / "reference" / "settings.md")}
    assert listed == {f"`{field.name}`": _shown(field.default) for field in msgspec.structs.fields(Settings)}


def test_the_errors_page_lists_every_code_with_its_status() -> None:
    for module in pkgutil.walk_packages(memory_gateway.__path__, "memory_gateway."):
        if not module.name.startswith(OTHER_FACE):
            importlib.import_module(module.name)
    found = {(str(status), f"`{code}`") for status, code in _CODES.items()} | {("its own", "`upstream_error`")}
    for kind in _error_classes(MemoryGatewayError):
        if kind.code != "upstream_error":
            found.add((str(kind.status), f"`{kind.code}`"))
    assert {(row[0], row[1]) for row in table_rows(DOCS / "reference" / "errors.md")} == found


def _error_classes(root: type[MemoryGatewayError]) -> Iterator[type[MemoryGatewayError]]:
    if root.__module__.startswith("memory_gateway.") and not root.__module__.startswith(OTHER_FACE):
        yield root
        for kind in root.__subclasses__():
            yield from _error_classes(kind)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, fragment = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link} leads nowhere"
        assert target.is_relative_to(ROOT), f"{link} leaves the project"
        assert not fragment or fragment in anchors(target), f"{link}: no such heading"


def test_every_page_of_the_docs_can_be_reached_from_the_readme() -> None:
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        found = [(page.parent / link.partition("#")[0]).resolve() for link in links(page) if "://" not in link]
        waiting += [target for target in found if target.suffix == ".md"]
    assert {page for page in pages() if page.is_relative_to(DOCS)} <= reached
    assert ROOT / "README.zh-CN.md" in reached


def test_the_changelog_tells_of_this_version() -> None:
    assert f"## {memory_gateway.__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_decisions_are_numbered_without_a_gap_and_have_the_same_parts() -> None:
    decisions = sorted((DOCS / "decisions").glob("[0-9]*.md"))
    assert [int(page.name[:4]) for page in decisions] == list(range(1, len(decisions) + 1))
    for page in decisions:
        text = page.read_text("utf-8")
        assert text.startswith(f"# {int(page.name[:4])}. ")
        assert re.findall(r"^## (\w+)", text, re.MULTILINE) in (
            ["Context", "Measured", "Decision", "Consequences"],
            ["Context", "Decision", "Measured", "Consequences"],
            ["Context", "Decision", "Consequences"],
        )


@pytest.mark.parametrize("readme", ["README.md", "README.zh-CN.md"])
def test_every_make_target_that_a_readme_names_exists(readme: str) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z]+)", (ROOT / readme).read_text("utf-8")))
    assert {"demo", "test", "serve"} <= named <= targets


def test_both_readmes_have_the_same_parts() -> None:
    levels = [
        re.findall(r"^(#+) ", (ROOT / name).read_text("utf-8"), re.MULTILINE)
        for name in ("README.md", "README.zh-CN.md")
    ]
    assert levels[0] == levels[1]
