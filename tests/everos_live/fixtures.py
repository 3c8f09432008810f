"""``pytest --everos live``: what concerns EverOS runs on a real one, started here, and nothing else runs.

Without it the conformance suite plays back a recording, and what only a live server can show is left out.
``--everos record`` writes that recording anew.
"""

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.everos_live import install
from tests.everos_live.server import EverosServer, running_everos

_SERVER = pytest.StashKey[EverosServer]()


def pytest_addoption(parser: pytest.Parser) -> None:
    choices = ("recorded", "live", "record")
    parser.addoption("--everos", choices=choices, default="recorded", help="the EverOS that tests speak to")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A live run is a run of its own, in one process: two would start two servers."""
    live = config.getoption("--everos") != "recorded"
    if live and hasattr(config, "workerinput"):
        raise pytest.UsageError("--everos live runs in one process: leave -n out")
    kept = [item for item in items if (_is_live(item) if live else item.get_closest_marker("live") is None)]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
    items[:] = kept


def _is_live(item: pytest.Item) -> bool:
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return item.get_closest_marker("live") is not None or parameters.get("upstream_name") == "everos"


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
    """A real EverOS on an empty root, for the whole run."""
    if not install.installed():
        pytest.fail(f"EverOS is not in {install.folder()}; make everos installs it")
    with running_everos(tmp_path_factory.mktemp("everos"), model_folder) as server:
        request.config.stash[_SERVER] = server
        yield server
        assert server.model.unforeseen == []
