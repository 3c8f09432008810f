"""One id for each request: in the reply's header, in the error envelope, in the log and in the audit table."""

import logging
import re
from contextvars import ContextVar

from litestar.types import ASGIApp, Message, Receive, Scope, Send

from memory_gateway.kit.ids import IdMaker

_ACCEPTED = re.compile(rb"[A-Za-z0-9_-]{1,64}")
_REQUEST_ID: ContextVar[str | None] = ContextVar("request_id", default=None)


def current_request_id() -> str | None:
    """The id of the request being served; None outside of one."""
    return _REQUEST_ID.get()


class RequestIds:
    """Gives every request an id, the client's own where it is well formed, and every reply an ``X-Request-ID``."""

    def __init__(self, app: ASGIApp, new_id: IdMaker) -> None:
        self._app = app
        self._new_id = new_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = dict(scope["headers"]).get(b"x-request-id", b"")
        request_id = asked.decode("ascii") if _ACCEPTED.fullmatch(asked) else self._new_id()
        header = (b"x-request-id", request_id.encode("ascii"))

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], header]
            await send(message)

        token = _REQUEST_ID.set(request_id)
        try:
            await self._app(scope, receive, send_with_id)
        finally:
            _REQUEST_ID.reset(token)


class RequestIdFilter(logging.Filter):
    """Puts ``request_id`` on every log record, for the formatter."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = _REQUEST_ID.get() or "-"
        return True
