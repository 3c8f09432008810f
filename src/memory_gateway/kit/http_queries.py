"""Paths and query strings: an unknown name is refused, as an unknown body field is, and never dropped silently."""

import re
from typing import Any
from urllib.parse import unquote_to_bytes

from litestar.connection import ASGIConnection
from litestar.exceptions import ValidationException
from litestar.handlers.base import BaseRouteHandler
from litestar.params import ParameterKwarg

from memory_gateway.kit.errors import InvalidInput
from memory_gateway.kit.http_json import invalid_input, refuse_unclean

_MISSING_PARAMETER = re.compile(r"Missing required \w+ parameter '(\w+)'")

_query_names_of: dict[Any, frozenset[str]] = {}


def refuse_bad_address(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """`InvalidInput` for a query parameter that the route does not know, for NUL and for broken UTF-8."""
    scope = connection.scope
    if "\0" in scope["path"]:
        refuse_unclean(scope["path"], "path")
    if not scope["query_string"]:
        return
    if b"%" in scope["query_string"]:
        _refuse_undecodable(scope["query_string"])
    known = _query_names_of.get(handler.fn)
    if known is None:
        known = _query_names_of[handler.fn] = frozenset(_query_names(handler))
    for name, value in connection.query_params.multi_items():
        if name not in known:
            raise InvalidInput("unknown field", field=name.replace("\0", "?"))
        refuse_unclean(value, name)


def _refuse_undecodable(query: bytes) -> None:
    """The framework reads broken UTF-8 as U+FFFD, which makes one name of many."""
    for pair in query.split(b"&"):
        try:
            unquote_to_bytes(pair).decode("utf-8")
        except UnicodeDecodeError as error:
            name = pair.partition(b"=")[0].decode("ascii", "replace")
            raise InvalidInput("not valid UTF-8", field=name) from error


def _query_names(handler: BaseRouteHandler) -> set[str]:
    """The route's own parameters under the names a client uses; all but query parameters do no harm here."""
    dependencies = handler.resolve_dependencies()
    return {
        (isinstance(field.kwarg_definition, ParameterKwarg) and field.kwarg_definition.name) or name
        for name, field in handler.parsed_fn_signature.parameters.items()
        if name not in dependencies and name not in {"data", "request"}
    }


def invalid_parameter(error: ValidationException) -> InvalidInput:
    """The first fault of query, path, header or an absent body, which the framework checks."""
    faults = error.extra if isinstance(error.extra, list) else []
    if not faults:
        missing = _MISSING_PARAMETER.search(error.detail)
        return InvalidInput("required", field=missing[1]) if missing else InvalidInput("invalid", field="request")
    field = faults[0].get("key", "")
    if field == "data":
        return InvalidInput("required", field="body")
    return invalid_input(faults[0]["message"], at=field)
