"""``/users``: registration, keys, export, erasure."""

import asyncio
from collections.abc import AsyncIterator
from typing import BinaryIO

from litestar import delete, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody
from litestar.response import Stream
from litestar.types import ControllerRouterHandler

from memory_gateway.gateway.accounts.erasure import UserErasure
from memory_gateway.gateway.accounts.export import UserExport
from memory_gateway.gateway.accounts.schemas import ErasedUser, NewUser, NewUserRequest, RotateRequest
from memory_gateway.gateway.accounts.service import Accounts
from memory_gateway.gateway.auth import ALSO_WHILE_ERASING
from memory_gateway.gateway.http import (
    ADMIN_SECURITY,
    OWNER_OR_ADMIN_SECURITY,
    USER_SECURITY,
    GatewayRequest,
    OptionalBody,
    acting,
    current_user,
    require_admin,
    require_owner_or_admin,
    require_user,
    responses,
)

_TAGS = ["users"]
_CHUNK = 1 << 18


@post(
    "/users",
    guards=[require_admin],
    security=ADMIN_SECURITY,
    summary="Register a user",
    tags=_TAGS,
    responses=responses(401, 409, 413, 415, 422),
)
async def create_user(data: JSONBody[NewUserRequest], accounts: NamedDependency[Accounts]) -> NewUser:
    return await accounts.create(data.user_id)


@post(
    "/users/{user_id:str}/keys",
    guards=[require_owner_or_admin],
    security=OWNER_OR_ADMIN_SECURITY,
    summary="Give a user a new key",
    operation_class=OptionalBody,
    tags=_TAGS,
    responses=responses(401, 403, 404, 413, 415, 422),
)
async def rotate_key(
    request: GatewayRequest,
    user_id: FromPath[str],
    accounts: NamedDependency[Accounts],
    data: JSONBody[RotateRequest | None] = None,
) -> NewUser:
    grace_seconds = data.grace_seconds if data is not None else 0
    return await accounts.rotate(user_id, grace_seconds, by=acting(request))


@get(
    "/users/me/export",
    guards=[require_user],
    security=USER_SECURITY,
    summary="Everything that is held on the caller, as a zip",
    tags=_TAGS,
    media_type="application/zip",
    responses=responses(401, 422, 502, 504),
)
async def export_user(request: GatewayRequest, user_export: NamedDependency[UserExport]) -> Stream:
    packed = await user_export.write(current_user(request))
    size = packed.seek(0, 2)
    packed.seek(0)
    headers = {"Content-Disposition": 'attachment; filename="memory-export.zip"', "Content-Length": str(size)}
    return Stream(_chunks(packed), media_type="application/zip", headers=headers)


@delete(
    "/users/{user_id:str}",
    guards=[require_owner_or_admin],
    security=OWNER_OR_ADMIN_SECURITY,
    summary="Erase a user and everything that is held on them",
    tags=_TAGS,
    status_code=200,
    opt=ALSO_WHILE_ERASING,
    responses=responses(401, 404, 422, 502, 504),
)
async def erase_user(
    request: GatewayRequest, user_id: FromPath[str], user_erasure: NamedDependency[UserErasure]
) -> ErasedUser:
    return await user_erasure.erase(user_id, by=acting(request))


async def _chunks(packed: BinaryIO) -> AsyncIterator[bytes]:
    with packed:
        while chunk := await asyncio.to_thread(packed.read, _CHUNK):
            yield chunk


ROUTES: list[ControllerRouterHandler] = [create_user, rotate_key, export_user, erase_user]
