"""Request bodies: JSON that says it is JSON, straight into the route's own struct."""

from typing import Any

from litestar import Request
from litestar.datastructures import State

from memory_gateway.kit.errors import InvalidInput, MalformedRequest, UnsupportedFormat
from memory_gateway.kit.http_json import decode_json


class ServiceRequest(Request[None, None, State]):
    """A request whose JSON body is decoded straight into the type of the route's ``data`` parameter.

    A web page can send any body to any server without asking first, but not under the name ``application/json``.
    """

    async def json(self) -> Any:
        if self.content_type[0] != "application/json":
            raise UnsupportedFormat("Content-Type must be application/json")
        field = self.route_handler.parsed_data_field
        try:
            return decode_json(await self.body(), Any if field is None else field.annotation)
        except MalformedRequest as error:
            raise InvalidInput(error.message, field="body") from error
