"""One envelope for every error of the gateway: ``{"error": {"code", "message", "details"?}, "request_id"}``."""

import logging
import math
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException
from litestar.openapi import ResponseSpec
from litestar.openapi.spec import Operation, RequestBody
from litestar.types import ExceptionHandlersMap, Receive, Scope, Send
from multipart import MultipartError

from memory_gateway.kit.errors import MalformedRequest, MemoryGatewayError, TooManyRequests
from memory_gateway.kit.http_queries import invalid_parameter
from memory_gateway.kit.http_request_id import current_request_id

_logger = logging.getLogger(__name__)
_DISCONNECTED = "client disconnected prematurely"
_CODES = {
    400: "malformed_request",
    404: "not_found",
    405: "method_not_allowed",
    413: "payload_too_large",
    415: "unsupported_format",
    416: "range_not_satisfiable",
}


class ErrorBody(msgspec.Struct, frozen=True, omit_defaults=True):
    """``code`` is for programs, ``message`` for people; ``details.field`` names a request field that is at fault."""

    code: str
    message: str
    details: dict[str, Any] | None = None


class ErrorReply(msgspec.Struct, frozen=True):
    """The envelope."""

    error: ErrorBody
    request_id: str | None


@dataclass
class OptionalBody(Operation):
    """``operation_class`` of a route whose body may be left out, which the framework's document does not say."""

    def __post_init__(self) -> None:
        if isinstance(self.request_body, RequestBody):
            self.request_body.required = False


def responses(*statuses: int) -> dict[int, ResponseSpec]:
    """The errors a route can answer with, for the OpenAPI document. 400, 500, 503 always; 429 comes with 401."""
    return {
        status: ResponseSpec(ErrorReply, description=HTTPStatus(status).phrase, generate_examples=False)
        for status in sorted({400, 500, 503, *statuses, *({429} if 401 in statuses else ())})
    }


def _reply(
    status: int, code: str, message: str, details: dict[str, Any] | None = None, headers: dict[str, str] | None = None
) -> Response[ErrorReply]:
    content = ErrorReply(ErrorBody(code, message, details), current_request_id())
    return Response(content, status_code=status, headers=headers, media_type="application/json")


def _own_error(_request: Request[Any, Any, Any], error: MemoryGatewayError) -> Response[ErrorReply]:
    headers = None
    if error.status >= 500:
        _logger.warning("request %s: %s: %s, because of %r", current_request_id(), error.code, error, error.__cause__)
    if isinstance(error, TooManyRequests):
        headers = {"Retry-After": str(max(1, math.ceil(error.retry_after)))}
    return _reply(error.status, error.code, error.message, error.details, headers)


def _framework_error(request: Request[Any, Any, Any], error: HTTPException) -> Response[ErrorReply]:
    if isinstance(error, ValidationException):
        return _own_error(request, invalid_parameter(error))
    if error.detail == _DISCONNECTED:
        return _own_error(request, MalformedRequest("the client went away"))
    if error.status_code >= 500:
        return _unexpected_error(request, error)
    status = HTTPStatus(error.status_code)
    return _reply(status, _CODES.get(status, "malformed_request"), status.phrase.lower(), headers=error.headers)


def _multipart_error(request: Request[Any, Any, Any], _error: MultipartError) -> Response[ErrorReply]:
    return _own_error(request, MalformedRequest("the body is not valid multipart/form-data"))


def _too_deep(request: Request[Any, Any, Any], _error: RecursionError) -> Response[ErrorReply]:
    return _own_error(request, MalformedRequest("the request is nested too deeply"))


def _unexpected_error(_request: Request[Any, Any, Any], error: Exception) -> Response[ErrorReply]:
    _logger.error("request %s failed", current_request_id(), exc_info=error)
    return _reply(500, MemoryGatewayError.code, "internal error")


async def send_error(error: Exception, scope: Scope, receive: Receive, send: Send) -> None:
    """What a route that raised this would be answered with."""
    request = Request[Any, Any, Any](scope, receive, send)
    reply = _own_error(request, error) if isinstance(error, MemoryGatewayError) else _unexpected_error(request, error)
    await reply.to_asgi_response(app=None, request=request)(scope, receive, send)


EXCEPTION_HANDLERS: ExceptionHandlersMap = {
    MemoryGatewayError: _own_error,
    HTTPException: _framework_error,
    MultipartError: _multipart_error,
    RecursionError: _too_deep,
    Exception: _unexpected_error,
}
