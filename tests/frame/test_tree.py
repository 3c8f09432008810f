"""The files of the project hold nothing of the machine they were written on."""

import re
import tomllib
from pathlib import Path

import pytest

from memory_gateway import __version__
from tests.frame.pages import ROOT, source_files

# put together here, so that this file does not hold what it looks for
MACHINE_PATHS = re.compile("|".join((re.escape(str(ROOT)) + r"\b", "/" + "root/", "/" + "work/", r"/Users/\w+/")))
REGISTRIES = re.compile(
    r"\b(pypi|pythonhosted|npmjs|yarnpkg|debian|ubuntu)[.](org|com)\b|--(extra-)?index-url|--find-links"
)
PINNED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][A-Za-z0-9.]*")


def _texts() -> list[tuple[Path, str]]:
    found = []
    for path in source_files():
        try:
            found.append((path.relative_to(ROOT), path.read_text("utf-8")))
        except UnicodeDecodeError:
            continue  # a picture or a document
    return found


@pytest.mark.parametrize("forbidden", [MACHINE_PATHS, REGISTRIES], ids=["machine paths", "registries"])
def test_no_file_names_a_place_that_others_do_not_have(forbidden: re.Pattern[str]) -> None:
    texts = [(path, text) for path, text in _texts() if "swagger_ui" not in path.parts]
    assert len(texts) > 50
    own = Path(__file__).relative_to(ROOT)
    assert [(str(path), match[0]) for path, text in texts if path != own for match in forbidden.finditer(text)] == []


def test_constraints_are_names_and_versions_and_nothing_else() -> None:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    assert len(lines) > 50
    assert [line for line in lines if not PINNED.fullmatch(line)] == []
    names = [_normal(line.partition("==")[0]) for line in lines]
    assert sorted(set(names)) == sorted(names)
    assert not {"torch", "memory-gateway"} & set(names)


def test_every_dependency_is_pinned_within_its_range() -> None:
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines())
    versions = {_normal(name): _numbers(version) for name, version in pins.items()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for requirement in [
        *project["dependencies"],
        *(item for extra in project["optional-dependencies"].values() for item in extra),
    ]:
        name = re.match(r"[A-Za-z0-9-]+", requirement)
        assert name is not None
        if name[0] == "memory-gateway":
            continue
        lowest = re.search(r">=([0-9.]+)", requirement)
        assert lowest is not None, f"{requirement} says no lowest version"
        assert versions[_normal(name[0])] >= _numbers(lowest[1]), requirement


def test_the_package_and_its_metadata_have_one_version() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"] == __version__


def test_what_ci_runs_is_executable_and_runs_lint_and_tests() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    lines = [line.strip() for line in script.read_text("utf-8").splitlines()]
    assert [line for line in lines if line.startswith("make ")] == ["make lint", "make everos", "make test"]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
