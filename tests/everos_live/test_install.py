"""EverOS is installed once, and where it cannot be, one line says why."""

import sys
import time
from pathlib import Path

import pytest

from tests.everos_live import install

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(install.FOLDER_VARIABLE, str(tmp_path / "everos"))
    return tmp_path / "everos"


def program(path: Path, script: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    path.chmod(0o755)
    return str(path)


def pretend_installed(folder: Path, version: str = install.VERSION) -> None:
    program(folder / "bin" / "python", f"echo {version}")
    (folder / ".installed").write_text(install._RECIPE.replace(install.VERSION, version), "utf-8")


def test_an_older_python_is_not_taken(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv(install.PYTHON_VARIABLE, "/bin/false")
    assert install.main([]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said == [
        "EverOS cannot be installed here, so nothing runs on a live one: /bin/false is not Python 3.12 or newer"
    ]
    assert not install.installed()


def test_one_of_pyenv_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "shims" / "python3.12", "exit 127")  # pyenv's own, where no 3.12 is chosen
    right = program(tmp_path / "versions" / "3.12.1" / "bin" / "python", "exit 0")
    monkeypatch.setenv("PATH", str(tmp_path / "shims"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert install._find_python() == right


def test_the_error_of_pip_is_what_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(install, "_find_python", lambda: sys.executable)
    monkeypatch.setattr(install, "REQUIREMENTS", ("everos==0.0.0",))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert install.main([]) == 0
    assert capsys.readouterr().out.endswith("No matching distribution found for everos==0.0.0\n")
    assert not install.installed()


def test_what_takes_too_long_is_given_up_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = program(tmp_path / "slow", "sleep 60 & sleep 60")
    monkeypatch.setattr(install, "_find_python", lambda: slow)
    monkeypatch.setattr(install, "_MOST_SECONDS", 0.2)
    started = time.monotonic()
    assert install.main([]) == 0
    assert time.monotonic() - started < 30
    assert capsys.readouterr().out.endswith(": not done after 0.2 seconds\n")


def test_a_folder_that_cannot_be_made_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(install.FOLDER_VARIABLE, str(tmp_path / "file" / "everos"))
    assert install.main([]) == 0
    assert "EverOS cannot be installed here, so nothing runs on a live one: " in capsys.readouterr().out


def test_what_is_there_is_not_installed_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "_install", lambda: pytest.fail("it was installed"))
    assert install.main(["--check"]) == 1
    pretend_installed(folder)
    assert install.main(["--check"]) == install.main([]) == 0


def test_another_version_is_not_taken_for_this_one(folder: Path) -> None:
    pretend_installed(folder, "1.5.0")
    assert not install.installed()


def test_one_whose_python_is_gone_is_not_taken(folder: Path) -> None:
    pretend_installed(folder)
    (folder / "bin" / "python").unlink()
    (folder / "bin" / "python").symlink_to(folder / "gone")
    assert not install.installed()


def test_ci_keeps_each_version_by_itself() -> None:
    assert f"/everos-{install.VERSION}" in (ROOT / ".ci" / "run").read_text("utf-8")
