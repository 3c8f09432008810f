"""``pytest --everos both``: what needs a real EverOS runs too, on one that is started here. ``live``: only that runs.

Without it the conformance suite plays back a recording, and what only a live server can show is left out.
``--everos record`` is ``live``, and writes that recording anew.
"""

import re
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests.everos_live import install
from tests.everos_live.server import EverosServer, running_everos

# xdist's master knows tests by their names alone.
_LIVE = re.compile(r"tests/everos_live/(?!test_install|test_ledgers)|\[live\b")
_MOST_SECONDS = 900  # more than the bounds of `server`, one after the other
_SERVER = pytest.StashKey[EverosServer]()


def pytest_addoption(parser: pytest.Parser) -> None:
    choices = ("recorded", "live", "both", "record")
    parser.addoption("--everos", choices=choices, default="recorded", help="the EverOS that tests speak to")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mode = config.getoption("--everos")
    live = [item for item in items if item.get_closest_marker("live")]
    others = [item for item in items if not item.get_closest_marker("live")]
    if strays := [item.nodeid for item in live if not _LIVE.search(item.nodeid)]:
        raise pytest.UsageError(f"by their names nobody would know these for live tests: {strays}")
    for item in live:
        item.add_marker(pytest.mark.timeout(_MOST_SECONDS))
    chosen = {"recorded": others, "both": [*live, *others]}.get(mode, live)
    config.hook.pytest_deselected(items=list(set(items) - set(chosen)))
    items[:] = chosen


class _OneServer(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """For ``-n``: all that is live goes to one process, which starts the server; it is the longest, and comes first."""

    def _split_scope(self, nodeid: str) -> str:
        return "live" if _LIVE.search(nodeid) else nodeid.partition("[")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    if config.getoption("--everos") == "recorded":
        return None
    config.option.loadscopereorder = False
    return _OneServer(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure comes with the end of the server's log, which stays in the run's temporary folder."""
    report = yield
    if report.failed and (server := item.config.stash.get(_SERVER, None)) is not None:
        report.sections.append((f"EverOS, the end of {server.log}", server.log_end()))
    return report


@pytest.fixture(scope="session")
def live_everos(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, model_folder: Path
) -> Iterator[EverosServer]:
    """A real EverOS on an empty root, for the whole run: started once, for the first test that needs it."""
    if not install.installed():
        pytest.fail(f"EverOS is not in {install.folder()}; make everos installs it")
    with running_everos(tmp_path_factory.mktemp("everos"), model_folder) as server:
        request.config.stash[_SERVER] = server
        yield server
        assert server.model.unforeseen == []
