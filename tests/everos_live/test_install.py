"""EverOS is installed once, and where it cannot be, one line says why."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.everos_live import install


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(install.FOLDER_VARIABLE, str(tmp_path / "everos"))
    return tmp_path / "everos"


def test_an_older_python_is_not_taken(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv(install.PYTHON_VARIABLE, "/bin/false")
    assert install.main([]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said == [
        "EverOS cannot be installed here, so nothing runs on a live one: /bin/false is not Python 3.12 or newer"
    ]
    assert not install.installed()


def test_the_error_of_pip_is_what_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(install, "_find_python", lambda: sys.executable)
    monkeypatch.setattr(install, "REQUIREMENTS", ("everos==0.0.0",))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert install.main([]) == 0
    assert capsys.readouterr().out.endswith("No matching distribution found for everos==0.0.0\n")
    assert not install.installed()


def test_what_is_there_is_not_installed_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("something was run"))
    assert install.main(["--check"]) == 1
    folder.mkdir()
    (folder / ".installed").write_text(install._RECIPE, "utf-8")
    assert install.main(["--check"]) == install.main([]) == 0


def test_another_version_is_not_taken_for_this_one(folder: Path) -> None:
    folder.mkdir()
    (folder / ".installed").write_text(install._RECIPE.replace("1.5.1", "1.5.0"), "utf-8")
    assert not install.installed()
