"""The Memory-Service's Litestar app."""

from litestar import Litestar, Router
from litestar.datastructures import State
from litestar.di import Provide

from memory_gateway.kit.http_replies import JsonReply
from memory_gateway.kit.http_request_id import RequestIds
from memory_gateway.kit.ids import IdMaker, uuid7_id
from memory_gateway.memory_service.access import Access, require_access
from memory_gateway.memory_service.bodies import ServiceRequest
from memory_gateway.memory_service.entries import routes as entries_routes
from memory_gateway.memory_service.entries.service import Entries
from memory_gateway.memory_service.errors import EXCEPTION_HANDLERS
from memory_gateway.memory_service.health import Health, get_health
from memory_gateway.memory_service.thinking import routes as thinking_routes
from memory_gateway.memory_service.thinking.service import Thinking
from memory_gateway.storage.port import Database

PREFIX = "/api/v1"


def build_service_app(
    *,
    entries: Entries,
    thinking: Thinking,
    database: Database,
    host: str,
    service_token: str | None,
    max_body_bytes: int,
    new_request_id: IdMaker = uuid7_id,
) -> Litestar:
    """The app. ``host`` is the address that its server is bound to: who may call depends on it.

    `SettingsError` for an address beyond loopback without a token. Whoever builds the app starts and closes
    ``entries``.
    """
    app = Litestar(
        route_handlers=[Router(PREFIX, route_handlers=[get_health, *entries_routes.ROUTES, *thinking_routes.ROUTES])],
        dependencies={
            "entries": _always(entries),
            "thinking": _always(thinking),
            "health": _always(Health(database)),
        },
        before_request=require_access,
        exception_handlers=EXCEPTION_HANDLERS,
        request_class=ServiceRequest,
        response_class=JsonReply,
        request_max_body_size=max_body_bytes,
        openapi_config=None,
        state=State({"access": Access(host, service_token)}),
        logging_config=None,
    )
    # outside of the router, so that unknown paths and methods get an id as well
    app.asgi_handler = RequestIds(app.asgi_handler, new_request_id)
    return app


def _always(service: object) -> Provide:
    return Provide(lambda: service, sync_to_thread=False)
