"""One shape for every error of the Memory-Service: ``{"error": "..."}``, in the words of its API."""

import logging
from http import HTTPStatus
from typing import Any, get_args

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException
from litestar.types import ExceptionHandlersMap

from memory_gateway.kit.errors import (
    InvalidInput,
    MemoryGatewayError,
    PayloadTooLarge,
    StorageUnavailable,
    Unauthorized,
    UnsupportedFormat,
)
from memory_gateway.kit.http_queries import invalid_parameter
from memory_gateway.kit.http_request_id import current_request_id
from memory_gateway.memory_service.entries.schemas import CATEGORIES, Source
from memory_gateway.storage.port import DatabaseFault

BAD_FORMAT = "请求格式错误: "
DATABASE_FAULT = "数据库错误"
INTERNAL_FAULT = "内部错误"

_logger = logging.getLogger(__name__)
_DISCONNECTED = "client disconnected prematurely"
_CHOICES = {"category": CATEGORIES, "source": get_args(Source)}


class ErrorReply(msgspec.Struct, frozen=True):
    """The shape."""

    error: str


def _reply(status: int, message: str, headers: dict[str, str] | None = None) -> Response[ErrorReply]:
    return Response(ErrorReply(message), status_code=status, headers=headers, media_type="application/json")


def _own_error(request: Request[Any, Any, Any], error: MemoryGatewayError) -> Response[ErrorReply]:
    if isinstance(error, StorageUnavailable):
        return _database_fault(request, error)
    if isinstance(error, InvalidInput):
        choices = _CHOICES.get(error.field)
        message = f"{error.field}: must be one of {', '.join(choices)}" if choices else error.message
        return _reply(400, BAD_FORMAT + message)
    if isinstance(error, PayloadTooLarge | UnsupportedFormat):
        return _reply(error.status, BAD_FORMAT + error.message)
    if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return _unexpected_error(request, error)
    headers = {"WWW-Authenticate": "Bearer"} if isinstance(error, Unauthorized) else None
    return _reply(error.status, error.message, headers)


def _framework_error(request: Request[Any, Any, Any], error: HTTPException) -> Response[ErrorReply]:
    if isinstance(error, ValidationException):
        return _own_error(request, invalid_parameter(error))
    status = HTTPStatus(error.status_code)
    if status in {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED}:
        return _reply(status, status.phrase.lower(), error.headers)
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return _reply(status, BAD_FORMAT + "the body is too large")
    if error.detail == _DISCONNECTED:
        return _reply(400, BAD_FORMAT + "the client went away")
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return _unexpected_error(request, error)
    return _reply(status, BAD_FORMAT + status.phrase.lower(), error.headers)


def _too_deep(request: Request[Any, Any, Any], _error: RecursionError) -> Response[ErrorReply]:
    return _own_error(request, InvalidInput("nested too deeply", field="body"))


def _database_fault(_request: Request[Any, Any, Any], error: Exception) -> Response[ErrorReply]:
    if isinstance(error, StorageUnavailable):  # as every request is while a server is away: a line each is enough
        because = error.__cause__
        _logger.error("request %s: the database failed: %s, because of %r", current_request_id(), error, because)
    else:
        _logger.error("request %s: the database failed", current_request_id(), exc_info=error)
    return _reply(500, DATABASE_FAULT)


def _unexpected_error(_request: Request[Any, Any, Any], error: Exception) -> Response[ErrorReply]:
    _logger.error("request %s failed", current_request_id(), exc_info=error)
    return _reply(500, INTERNAL_FAULT)


EXCEPTION_HANDLERS: ExceptionHandlersMap = {
    MemoryGatewayError: _own_error,
    HTTPException: _framework_error,
    DatabaseFault: _database_fault,
    RecursionError: _too_deep,
    Exception: _unexpected_error,
}
