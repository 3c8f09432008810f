"""Prometheus metrics of one app: requests by method, route and status, their duration, and gauges of other rooms."""

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from litestar import Response, get
from litestar.di import NamedDependency
from litestar.enums import ScopeType
from litestar.exceptions import HTTPException
from litestar.types import ASGIApp, Message, Receive, Scope, Send
from litestar.utils import normalize_path
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from memory_gateway.kit.errors import MemoryGatewayError

_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """A registry of its own, so that several apps in one process don't mix."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._registry = registry
        self._requests = Counter(
            "memory_gateway_http_requests", "Requests answered.", ("method", "route", "status"), registry=registry
        )
        self._seconds = Histogram(
            "memory_gateway_http_request_seconds",
            "Time until the whole answer was sent.",
            ("method", "route"),
            buckets=_BUCKETS,
            registry=registry,
        )
        self._children: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._gauges: list[tuple[Gauge, Callable[[], Awaitable[float | None]]]] = []

    def gauge(self, name: str, description: str, read: Callable[[], Awaitable[float | None]]) -> None:
        """A gauge that is read whenever the metrics are; None, or a room that cannot tell, leaves its last value."""
        self._gauges.append((Gauge(f"memory_gateway_{name}", description, registry=self._registry), read))

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        key = (method if method in _METHODS else "OTHER", route, status)
        children = self._children.get(key)
        if children is None:
            children = self._requests.labels(key[0], route, str(status)), self._seconds.labels(key[0], route)
            self._children[key] = children
        children[0].inc()
        children[1].observe(seconds)

    async def render(self) -> bytes:
        for gauge, read in self._gauges:
            with suppress(MemoryGatewayError):
                if (value := await read()) is not None:
                    gauge.set(value)
        return generate_latest(self._registry)


class CountRequests:
    """Counts every reply, those to unknown paths and methods too, with the status that was sent."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            return await self._app(scope, receive, send)
        method, status = scope["method"], 500
        path = scope["path"]
        started = time.perf_counter()

        async def send_counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_counted)
        finally:
            route = scope.get("path_template") or (_other_method(scope, path) if status == 405 else "unmatched")
            self._metrics.count(method, route, status, time.perf_counter() - started)
        return None


def _other_method(scope: Scope, path: str) -> str:
    """The route of a path whose method is not allowed: the one that another method has there."""
    router = scope["litestar_app"].asgi_router
    for method in ("GET", "POST", "PUT", "DELETE"):
        with suppress(HTTPException):
            return str(router.handle_routing(path=normalize_path(path), method=method)[-1])
    return "unmatched"


@get("/metrics", summary="Prometheus metrics", include_in_schema=False)
async def get_metrics(metrics: NamedDependency[Metrics]) -> Response[bytes]:
    return Response(await metrics.render(), media_type=CONTENT_TYPE_PLAIN_0_0_4)
