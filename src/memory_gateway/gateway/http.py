"""What a room's `routes.py` needs of the front door, in one import.

A route names its guard and the errors it can answer with, takes its service by the name that `build_app` was given,
and reads the caller from the guard, never from the body::

    @get("/resources/{resource_id:str}", guards=[require_user], security=USER_SECURITY, responses=responses(401, 404))
    async def get_resource(
        request: GatewayRequest, resource_id: FromPath[str], resources: NamedDependency[Resources]
    ) -> Resource:
        return await resources.get(current_user(request), resource_id)

A JSON body is a frozen struct that extends `BodyCredentials` and is taken as ``data: JSONBody[...]``; `OptionalBody` is
the ``operation_class`` of a route that can do without one. A multipart route sets ``opt=CREDENTIALS_IN_FORM`` and calls
`admit_form` before it reads the file part.
"""

from memory_gateway.gateway.auth import (
    ADMIN_SECURITY,
    CREDENTIALS_IN_FORM,
    OWNER_OR_ADMIN_SECURITY,
    USER_SECURITY,
    acting,
    admit_form,
    current_user,
    require_admin,
    require_owner_or_admin,
    require_user,
)
from memory_gateway.gateway.bodies import BodyCredentials, GatewayRequest
from memory_gateway.gateway.errors import ErrorReply, OptionalBody, responses
from memory_gateway.kit.http_request_id import current_request_id

__all__ = [
    "ADMIN_SECURITY",
    "CREDENTIALS_IN_FORM",
    "OWNER_OR_ADMIN_SECURITY",
    "USER_SECURITY",
    "BodyCredentials",
    "ErrorReply",
    "GatewayRequest",
    "OptionalBody",
    "acting",
    "admit_form",
    "current_request_id",
    "current_user",
    "require_admin",
    "require_owner_or_admin",
    "require_user",
    "responses",
]
