"""``/resources``: upload, list, detail, bytes, delete, restore."""

from dataclasses import dataclass
from typing import Annotated

from litestar import Response, delete, get, post
from litestar.di import NamedDependency
from litestar.exceptions import HTTPException
from litestar.openapi import ResponseSpec
from litestar.openapi.spec import OpenAPIFormat, OpenAPIMediaType, OpenAPIType, Operation, RequestBody, Schema
from litestar.params import FromPath, FromQuery, HeaderParameter, QueryParameter
from litestar.response import Stream
from litestar.types import ControllerRouterHandler

from memory_gateway.gateway.http import (
    CREDENTIALS_IN_FORM,
    USER_SECURITY,
    GatewayRequest,
    admit_form,
    current_user,
    require_user,
    responses,
)
from memory_gateway.gateway.resources.content import ByteRange, Unsatisfiable, byte_range, disposition
from memory_gateway.gateway.resources.form import FIELDS, UploadForm
from memory_gateway.gateway.resources.schemas import Resource, ResourcePage, UploadReply
from memory_gateway.gateway.resources.service import Resources

_TAGS = ["resources"]
_BYTES = "application/octet-stream"


@dataclass
class UploadOperation(Operation):
    """Describes the body, which the route reads as a stream and the framework does not see."""

    def __post_init__(self) -> None:
        text = Schema(type=OpenAPIType.STRING)
        file = Schema(type=OpenAPIType.STRING, format=OpenAPIFormat.BINARY)
        form = Schema(
            type=OpenAPIType.OBJECT,
            properties={**dict.fromkeys(FIELDS, text), "file": file},
            required=["file"],
            additional_properties=False,
        )
        self.request_body = RequestBody(content={"multipart/form-data": OpenAPIMediaType(schema=form)}, required=True)


@post(
    "/resources",
    guards=[require_user],
    opt=CREDENTIALS_IN_FORM,
    security=USER_SECURITY,
    summary="Upload a file",
    tags=_TAGS,
    operation_class=UploadOperation,
    request_max_body_size=None,  # the form counts, by a limit of its own
    responses={
        200: ResponseSpec(UploadReply, description="The same bytes were there already", generate_examples=False),
        **responses(401, 403, 413, 415, 422, 502, 504),
    },
)
async def upload_resource(request: GatewayRequest, resources: NamedDependency[Resources]) -> Response[UploadReply]:
    async def admit(user_id: str | None, user_key: str | None) -> str:
        return await admit_form(request, user_id, user_key)

    content_type = request.headers.get("content-type", "")
    reply = await UploadForm(resources, admit).upload(request.stream(), content_type, request.content_length)
    return Response(reply, status_code=201 if reply.created else 200)


@get(
    "/resources",
    guards=[require_user],
    security=USER_SECURITY,
    summary="List files, newest first",
    tags=_TAGS,
    responses=responses(401, 422),
)
async def list_resources(
    request: GatewayRequest,
    resources: NamedDependency[Resources],
    *,
    limit: Annotated[int, QueryParameter(ge=1, le=200)] = 50,
    cursor: Annotated[str | None, QueryParameter(max_length=200)] = None,
    app_id: FromQuery[str | None] = None,
    project_id: FromQuery[str | None] = None,
) -> ResourcePage:
    return await resources.page(current_user(request), limit=limit, cursor=cursor, app_id=app_id, project_id=project_id)


@get(
    "/resources/{resource_id:str}",
    guards=[require_user],
    security=USER_SECURITY,
    summary="One file's details, also when it is deleted",
    tags=_TAGS,
    responses=responses(401, 404, 422),
)
async def get_resource(
    request: GatewayRequest, resource_id: FromPath[str], resources: NamedDependency[Resources]
) -> Resource:
    return await resources.get(current_user(request), resource_id)


@get(
    "/resources/{resource_id:str}/content",
    guards=[require_user],
    security=USER_SECURITY,
    summary="A file's bytes, or a range of them",
    tags=_TAGS,
    media_type=_BYTES,
    responses={
        206: ResponseSpec(bytes, description="The range asked for", media_type=_BYTES, generate_examples=False),
        **responses(401, 404, 416, 422),
    },
)
async def get_content(
    request: GatewayRequest,
    resource_id: FromPath[str],
    resources: NamedDependency[Resources],
    range_header: Annotated[str | None, HeaderParameter(name="Range")] = None,
    if_range: Annotated[str | None, HeaderParameter(name="If-Range")] = None,
) -> Stream:
    stored = await resources.live(current_user(request), resource_id)
    resource = stored.resource
    headers = {
        "Content-Type": resource.mime_type,
        "Content-Disposition": disposition(resource.name),
        "Accept-Ranges": "bytes",
        "ETag": f'"{resource.sha256}"',
        "X-Content-Type-Options": "nosniff",
    }
    try:
        unchanged = if_range is None or if_range == headers["ETag"]
        part = byte_range(range_header if unchanged else None, resource.size)
    except Unsatisfiable as error:
        beyond = {"Content-Range": f"bytes */{resource.size}"}
        raise HTTPException(status_code=416, headers=beyond) from error
    if part is not None:
        headers["Content-Range"] = f"bytes {part.first}-{part.last}/{resource.size}"
    wanted = part or ByteRange(0, resource.size - 1)
    headers["Content-Length"] = str(wanted.last - wanted.first + 1)
    return Stream(await resources.content(stored, wanted), status_code=206 if part else 200, headers=headers)


@delete(
    "/resources/{resource_id:str}",
    guards=[require_user],
    security=USER_SECURITY,
    summary="Delete a file; it can be restored. Deleting it again changes nothing",
    tags=_TAGS,
    status_code=200,
    responses=responses(401, 404, 422),
)
async def delete_resource(
    request: GatewayRequest, resource_id: FromPath[str], resources: NamedDependency[Resources]
) -> Resource:
    return await resources.delete(current_user(request), resource_id)


@post(
    "/resources/{resource_id:str}/restore",
    guards=[require_user],
    security=USER_SECURITY,
    summary="Undo a delete",
    tags=_TAGS,
    status_code=200,
    responses=responses(401, 404, 409, 422),
)
async def restore_resource(
    request: GatewayRequest, resource_id: FromPath[str], resources: NamedDependency[Resources]
) -> Resource:
    return await resources.restore(current_user(request), resource_id)


ROUTES: list[ControllerRouterHandler] = [
    upload_resource,
    list_resources,
    get_resource,
    get_content,
    delete_resource,
    restore_resource,
]
