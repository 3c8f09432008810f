"""`make demo` tells the whole story, and says so when something in it does not hold."""

import sys
import tempfile
from pathlib import Path

import pytest

from memory_gateway.demo.child import ServerDied, running_server
from memory_gateway.demo.story import run


@pytest.mark.slow
def test_the_whole_story_holds_on_a_real_server_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert run() == 0
    told = capsys.readouterr().out
    assert "All of it held" in told
    assert "✗" not in told
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_ends_at_once_breaks_the_story_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert run() == 1
    assert "The story broke off: the server did not start" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_log_of_a_server_that_does_not_start_is_told(tmp_path: Path) -> None:
    with (
        pytest.raises(ServerDied, match="unknown setting 'colour'"),
        running_server(tmp_path, "admin-of-the-test", colour="coral"),
    ):
        pass
