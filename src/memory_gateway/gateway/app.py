"""The gateway's Litestar app: every room's routes behind the one front door."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager

from litestar import Litestar
from litestar.datastructures import State
from litestar.di import Provide
from litestar.types import ControllerRouterHandler

from memory_gateway.gateway.accounts import routes as accounts_routes
from memory_gateway.gateway.accounts.erasure import UserErasure
from memory_gateway.gateway.accounts.export import UserExport
from memory_gateway.gateway.accounts.service import Accounts
from memory_gateway.gateway.api_pages import ClosedStructs, get_openapi, openapi_config, swagger_assets
from memory_gateway.gateway.auth import Gatekeeper
from memory_gateway.gateway.bodies import GatewayRequest
from memory_gateway.gateway.errors import EXCEPTION_HANDLERS
from memory_gateway.gateway.health import Health, get_health
from memory_gateway.gateway.limits import TokenBuckets
from memory_gateway.gateway.memories.paths import ExactMemoryPaths
from memory_gateway.gateway.metrics import CountRequests, Metrics, get_metrics
from memory_gateway.kit.http_request_id import RequestIds
from memory_gateway.kit.ids import IdMaker, uuid7_id

Lifespan = Callable[[Litestar], AbstractAsyncContextManager[object]]


def build_app(
    *,
    accounts: Accounts,
    user_export: UserExport,
    user_erasure: UserErasure,
    health: Health,
    metrics: Metrics,
    admin_key: bytes,
    max_body_bytes: int,
    rate_limit: float | None,
    auth_failure_limit: float,
    route_handlers: Sequence[ControllerRouterHandler] = (),
    services: Mapping[str, object] | None = None,
    lifespan: Sequence[Lifespan] = (),
    new_request_id: IdMaker = uuid7_id,
) -> Litestar:
    """The app with the front door's own routes and `route_handlers`.

    ``services``: what those handlers take, by the name of their parameter. ``rate_limit``: requests a second of one
    user, None for no limit. ``auth_failure_limit``: failed authentications a minute of one client address.
    """
    own_services = {
        "accounts": accounts,
        "user_export": user_export,
        "user_erasure": user_erasure,
        "health": health,
        "metrics": metrics,
    }
    app = Litestar(
        route_handlers=[*_own_routes(), *route_handlers],
        dependencies={name: _always(service) for name, service in {**own_services, **(services or {})}.items()},
        exception_handlers=EXCEPTION_HANDLERS,
        request_class=GatewayRequest,
        request_max_body_size=max_body_bytes,
        openapi_config=openapi_config(),
        plugins=[ClosedStructs()],
        state=State({"gatekeeper": _gatekeeper(accounts, admin_key, rate_limit, auth_failure_limit)}),
        lifespan=list(lifespan),
        logging_config=None,
    )
    # outside of the router, so that unknown paths and methods get an id and are counted as well
    app.asgi_handler = RequestIds(CountRequests(ExactMemoryPaths(app.asgi_handler), metrics), new_request_id)
    return app


def _own_routes() -> list[ControllerRouterHandler]:
    return [get_health, get_metrics, get_openapi, swagger_assets(), *accounts_routes.ROUTES]


def _always(service: object) -> Provide:
    return Provide(lambda: service, sync_to_thread=False)


def _gatekeeper(
    accounts: Accounts, admin_key: bytes, rate_limit: float | None, auth_failure_limit: float
) -> Gatekeeper:
    return Gatekeeper(
        accounts,
        admin_key,
        requests=None if rate_limit is None else TokenBuckets(rate_limit, burst=rate_limit),
        failures=TokenBuckets(auth_failure_limit / 60, burst=auth_failure_limit),
    )
