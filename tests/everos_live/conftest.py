"""The gateway, as one starts it, in front of a real EverOS."""

from collections.abc import Callable, Iterator

import pytest

from memory_gateway.demo.child import RunningServer, running_server
from tests.e2e.conftest import ADMIN_KEY, Person, register
from tests.everos_live.people import Settle
from tests.everos_live.server import EverosServer

Newcomer = Callable[[str], Person]


@pytest.fixture(scope="module")
def gateway(
    request: pytest.FixtureRequest, live_everos: EverosServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    """The parameter, where there is one: whether files reach EverOS as ``file://``, or as base64."""
    with running_server(
        tmp_path_factory.mktemp("gateway"),
        ADMIN_KEY,
        upstream="everos",
        upstream_url=live_everos.url,
        upstream_shares_files=str(getattr(request, "param", False)).lower(),
    ) as server:
        yield server


@pytest.fixture
def newcomer(gateway: RunningServer) -> Newcomer:
    """Registers a user whom EverOS, which all tests share, has never heard of."""
    return lambda name: register(gateway, f"{name}.{gateway.port}")


@pytest.fixture
def settle(live_everos: EverosServer) -> Settle:
    return live_everos.settle
