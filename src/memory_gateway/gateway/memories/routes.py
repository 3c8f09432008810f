"""``/memories``: add, flush, search, and the edits of single memories."""

from http import HTTPStatus
from typing import Annotated, Any

import msgspec
from litestar import Response, delete, get, post, put
from litestar.di import NamedDependency
from litestar.openapi import ResponseSpec
from litestar.params import FromPath, FromQuery, HeaderParameter, JSONBody
from litestar.types import ControllerRouterHandler

from memory_gateway.engine.schemas import MemoryType
from memory_gateway.gateway.http import (
    USER_SECURITY,
    GatewayRequest,
    OptionalBody,
    current_request_id,
    current_user,
    require_user,
    responses,
)
from memory_gateway.gateway.memories.found import MemoryRef
from memory_gateway.gateway.memories.idempotency import HEADER, StoredReply
from memory_gateway.gateway.memories.paths import memory_id_of
from memory_gateway.gateway.memories.schemas import (
    AddAnswer,
    Added,
    AddMemories,
    EditedMemory,
    EditMemory,
    FlushAnswer,
    FlushMemories,
    MemoryHistory,
    OverrideMemory,
    SearchMemories,
    SearchResults,
)
from memory_gateway.gateway.memories.service import Memories
from memory_gateway.gateway.names import app_or_project
from memory_gateway.kit.http_replies import JsonReply

_TAGS = ["memories"]
_JSON = "application/json"
# What an upstream may refuse with, beside what the gateway itself says
_UPSTREAM = (413, 415, 422, 502, 504)
_KEY = HeaderParameter(name=HEADER, description="The same key and body within 24 hours get the first answer again.")


class _Wire(msgspec.Struct):
    """The messages of a body as they were written."""

    messages: msgspec.Raw


@post(
    "/memories/add",
    guards=[require_user],
    security=USER_SECURITY,
    summary="Add messages to a session",
    tags=_TAGS,
    status_code=200,
    responses={
        202: ResponseSpec(AddAnswer, description="The upstream works on it later", generate_examples=False),
        **responses(401, 403, 409, *_UPSTREAM),
    },
)
async def add_memories(
    request: GatewayRequest,
    data: JSONBody[AddMemories],
    memories: NamedDependency[Memories],
    idempotency_key: Annotated[str | None, _KEY] = None,
) -> Response[AddAnswer]:
    user_id, body = current_user(request), await request.body()
    wire = msgspec.json.decode(body, type=_Wire)

    async def work() -> StoredReply:
        reply = await memories.add(user_id, data, wire.messages)
        added = Added(reply.message_count, reply.status)
        return _stored(reply.status, AddAnswer(current_request_id(), added))

    return _sent(await memories.once(user_id, "add", idempotency_key, body, work))


@post(
    "/memories/flush",
    guards=[require_user],
    security=USER_SECURITY,
    summary="Close what is open of a session",
    tags=_TAGS,
    status_code=200,
    responses={
        202: ResponseSpec(FlushAnswer, description="The upstream works on it later", generate_examples=False),
        **responses(401, 403, 409, *_UPSTREAM),
    },
)
async def flush_memories(
    request: GatewayRequest,
    data: JSONBody[FlushMemories],
    memories: NamedDependency[Memories],
    idempotency_key: Annotated[str | None, _KEY] = None,
) -> Response[FlushAnswer]:
    user_id, body = current_user(request), await request.body()

    async def work() -> StoredReply:
        reply = await memories.flush(user_id, data)
        return _stored(reply.status, FlushAnswer(current_request_id(), reply))

    return _sent(await memories.once(user_id, "flush", idempotency_key, body, work))


@post(
    "/memories/search",
    guards=[require_user],
    security=USER_SECURITY,
    summary="Search the caller's memories",
    response_class=JsonReply,
    tags=_TAGS,
    status_code=200,
    responses=responses(401, 403, *_UPSTREAM),
)
async def search_memories(
    request: GatewayRequest, data: JSONBody[SearchMemories], memories: NamedDependency[Memories]
) -> SearchResults:
    return await memories.search(current_user(request), data)


@delete(
    "/memories/{memory_id:str}",
    guards=[require_user],
    security=USER_SECURITY,
    summary="Delete a memory for the caller; it can be restored. Deleting it again changes nothing",
    tags=_TAGS,
    status_code=200,
    responses=responses(401, 404, 422, 502, 504),
)
async def delete_memory(
    request: GatewayRequest,
    memory_id: FromPath[str],
    memories: NamedDependency[Memories],
    *,
    app_id: FromQuery[str | None] = None,
    project_id: FromQuery[str | None] = None,
    memory_type: FromQuery[MemoryType] = "episode",
) -> EditedMemory:
    return await memories.delete(current_user(request), _ref(memory_id, app_id, project_id, memory_type))


@post(
    "/memories/{memory_id:str}/restore",
    guards=[require_user],
    security=USER_SECURITY,
    summary="Undo a delete",
    operation_class=OptionalBody,
    tags=_TAGS,
    status_code=200,
    responses=responses(401, 403, 404, 413, 415, 422),
)
async def restore_memory(
    request: GatewayRequest,
    memory_id: FromPath[str],
    memories: NamedDependency[Memories],
    data: JSONBody[EditMemory | None] = None,  # noqa: ARG001 - it may hold credentials, which the guard reads
    *,
    app_id: FromQuery[str | None] = None,
    project_id: FromQuery[str | None] = None,
    memory_type: FromQuery[MemoryType] = "episode",
) -> EditedMemory:
    return await memories.restore(current_user(request), _ref(memory_id, app_id, project_id, memory_type))


@put(
    "/memories/{memory_id:str}",
    guards=[require_user],
    security=USER_SECURITY,
    summary="Show the caller's own text instead of the upstream's",
    tags=_TAGS,
    responses=responses(401, 403, 404, 409, 413, 415, 422),
)
async def override_memory(
    request: GatewayRequest,
    memory_id: FromPath[str],
    data: JSONBody[OverrideMemory],
    memories: NamedDependency[Memories],
    *,
    app_id: FromQuery[str | None] = None,
    project_id: FromQuery[str | None] = None,
    memory_type: FromQuery[MemoryType] = "episode",
) -> EditedMemory:
    ref = _ref(memory_id, app_id, project_id, memory_type)
    return await memories.override(current_user(request), ref, data.text, data.reason)


@delete(
    "/memories/{memory_id:str}/override",
    guards=[require_user],
    security=USER_SECURITY,
    summary="Show the upstream's text again",
    tags=_TAGS,
    status_code=200,
    responses=responses(401, 404, 422),
)
async def remove_override(
    request: GatewayRequest,
    memory_id: FromPath[str],
    memories: NamedDependency[Memories],
    *,
    app_id: FromQuery[str | None] = None,
    project_id: FromQuery[str | None] = None,
    memory_type: FromQuery[MemoryType] = "episode",
) -> EditedMemory:
    return await memories.remove_override(current_user(request), _ref(memory_id, app_id, project_id, memory_type))


@get(
    "/memories/{memory_id:str}/history",
    guards=[require_user],
    security=USER_SECURITY,
    summary="Every edit of a memory, oldest first",
    tags=_TAGS,
    responses=responses(401, 404, 422),
)
async def memory_history(
    request: GatewayRequest,
    memory_id: FromPath[str],
    memories: NamedDependency[Memories],
    *,
    app_id: FromQuery[str | None] = None,
    project_id: FromQuery[str | None] = None,
    memory_type: FromQuery[MemoryType] = "episode",
) -> MemoryHistory:
    return await memories.history(current_user(request), _ref(memory_id, app_id, project_id, memory_type))


def _ref(memory_id: str, app_id: str | None, project_id: str | None, memory_type: MemoryType) -> MemoryRef:
    return MemoryRef(
        app_or_project(app_id, "app_id"),
        app_or_project(project_id, "project_id"),
        memory_type,
        memory_id_of(memory_id),
    )


def _stored(status: str, answer: AddAnswer | FlushAnswer) -> StoredReply:
    code = HTTPStatus.ACCEPTED if status == "queued" else HTTPStatus.OK
    return StoredReply(code, msgspec.json.encode(answer))


def _sent(reply: StoredReply) -> Response[Any]:
    """To the byte as it is stored, so that a repeated request gets the same."""
    return Response(reply.body, status_code=reply.status, media_type=_JSON)


ROUTES: list[ControllerRouterHandler] = [
    add_memories,
    flush_memories,
    search_memories,
    delete_memory,
    restore_memory,
    override_memory,
    remove_override,
    memory_history,
]
