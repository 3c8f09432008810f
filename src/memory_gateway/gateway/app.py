"""The gateway's Litestar app: every room's routes behind the one front door."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager

from litestar import Litestar
from litestar.datastructures import State
from litestar.di import Provide
from litestar.types import ASGIApp, ControllerRouterHandler

from memory_gateway.gateway.accounts import routes as accounts_routes
from memory_gateway.gateway.accounts.erasure import UserErasure
from memory_gateway.gateway.accounts.export import UserExport
from memory_gateway.gateway.accounts.service import Accounts
from memory_gateway.gateway.api_pages import ClosedStructs, get_openapi, openapi_config, swagger_assets
from memory_gateway.gateway.auth import Gatekeeper
from memory_gateway.gateway.bodies import GatewayRequest
from memory_gateway.gateway.errors import EXCEPTION_HANDLERS
from memory_gateway.gateway.health import Health, get_health
from memory_gateway.gateway.limits.buckets import TokenBuckets
from memory_gateway.gateway.memories.paths import ExactMemoryPaths
from memory_gateway.gateway.metrics import CountRequests, Metrics, get_metrics
from memory_gateway.kit.http_request_id import RequestIds
from memory_gateway.kit.ids import IdMaker, uuid7_id

Door = Callable[[ASGIApp, Gatekeeper], ASGIApp]
Lifespan = Callable[[Litestar], AbstractAsyncContextManager[object]]
ShareLimits = Callable[[Mapping[str, TokenBuckets]], AbstractAsyncContextManager[object]]


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
    doors: Sequence[Door] = (),
    share_limits: ShareLimits | None = None,
    lifespan: Sequence[Lifespan] = (),
    new_request_id: IdMaker = uuid7_id,
) -> Litestar:
    """The app with the front door's own routes and `route_handlers`.

    ``services``: what those handlers take, by the name of their parameter. ``doors``: a way of their own in, for
    requests that are asked most, around the router. ``rate_limit``: requests a second of one
    user, None for no limit. ``auth_failure_limit``: failed authentications a minute of one client address.
    ``share_limits`` keeps both in step with other processes; None where there are no others.
    """
    own_services = {
        "accounts": accounts,
        "user_export": user_export,
        "user_erasure": user_erasure,
        "health": health,
        "metrics": metrics,
    }
    limits = _limits(rate_limit, auth_failure_limit)
    gatekeeper = Gatekeeper(accounts, admin_key, requests=limits.get("requests"), failures=limits["failures"])
    sharing: list[Lifespan] = [] if share_limits is None else [lambda _: share_limits(limits)]
    app = Litestar(
        route_handlers=[*_own_routes(), *route_handlers],
        dependencies={name: _always(service) for name, service in {**own_services, **(services or {})}.items()},
        exception_handlers=EXCEPTION_HANDLERS,
        request_class=GatewayRequest,
        request_max_body_size=max_body_bytes,
        openapi_config=openapi_config(),
        plugins=[ClosedStructs()],
        state=State({"gatekeeper": gatekeeper}),
        lifespan=[*sharing, *lifespan],
        logging_config=None,
    )
    # outside of the router, so that unknown paths and methods get an id and are counted as well
    inner = _behind(doors, ExactMemoryPaths(app.asgi_handler), gatekeeper)
    app.asgi_handler = RequestIds(CountRequests(inner, metrics), new_request_id)
    return app


def _behind(doors: Sequence[Door], inner: ASGIApp, gatekeeper: Gatekeeper) -> ASGIApp:
    for door in doors:
        inner = door(inner, gatekeeper)
    return inner


def _own_routes() -> list[ControllerRouterHandler]:
    return [get_health, get_metrics, get_openapi, swagger_assets(), *accounts_routes.ROUTES]


def _always(service: object) -> Provide:
    return Provide(lambda: service, sync_to_thread=False)


def _limits(rate_limit: float | None, auth_failure_limit: float) -> dict[str, TokenBuckets]:
    limits = {"failures": TokenBuckets(auth_failure_limit / 60, burst=auth_failure_limit)}
    if rate_limit is not None:
        limits["requests"] = TokenBuckets(rate_limit, burst=rate_limit)
    return limits
