"""Paths and query strings: an unknown name is refused, as an unknown body field is, and never dropped silently."""

from typing import Any

from litestar.connection import ASGIConnection
from litestar.handlers.base import BaseRouteHandler
from litestar.params import ParameterKwarg

from memory_gateway.gateway.bodies import refuse_unclean
from memory_gateway.kit.errors import InvalidInput

_query_names_of: dict[Any, frozenset[str]] = {}


def refuse_bad_address(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """`InvalidInput` for a query parameter that the route does not know, and for NUL in path or query."""
    scope = connection.scope
    if "\0" in scope["path"]:
        refuse_unclean(scope["path"], "path")
    if not scope["query_string"]:
        return
    known = _query_names_of.get(handler.fn)
    if known is None:
        known = _query_names_of[handler.fn] = frozenset(_query_names(handler))
    for name, value in connection.query_params.multi_items():
        if name not in known:
            raise InvalidInput("unknown field", field=name.replace("\0", "?"))
        refuse_unclean(value, name)


def _query_names(handler: BaseRouteHandler) -> set[str]:
    """The route's own parameters under the names a client uses; all but query parameters do no harm here."""
    dependencies = handler.resolve_dependencies()
    return {
        (isinstance(field.kwarg_definition, ParameterKwarg) and field.kwarg_definition.name) or name
        for name, field in handler.parsed_fn_signature.parameters.items()
        if name not in dependencies and name not in {"data", "request"}
    }
