"""The OpenAPI document at ``/openapi.json`` and its pages at ``/docs``, which ask nothing of the network."""

from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
from litestar import Request, Response, Router, get
from litestar._openapi.schema_generation.plugins.struct import StructSchemaPlugin
from litestar._openapi.schema_generation.schema import SchemaCreator
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import SwaggerRenderPlugin
from litestar.openapi.spec import Components, License, Schema, SecurityScheme
from litestar.static_files import create_static_files_router
from litestar.typing import FieldDefinition

from memory_gateway import __version__

_ASSETS = "/docs/assets"
_FOLDER = Path(str(files("memory_gateway.gateway") / "swagger_ui"))

_SECURITY_SCHEMES = {
    "UserID": SecurityScheme(type="apiKey", name="X-User-ID", security_scheme_in="header"),
    "UserKey": SecurityScheme(type="apiKey", name="X-User-Key", security_scheme_in="header"),
    "AdminKey": SecurityScheme(type="apiKey", name="X-Admin-Key", security_scheme_in="header"),
}


class ClosedStructs(StructSchemaPlugin):
    """Litestar's schema of a struct, and ``additionalProperties: false`` where the struct refuses unknown fields."""

    def to_openapi_schema(self, field_definition: FieldDefinition, schema_creator: SchemaCreator) -> Schema:
        schema = super().to_openapi_schema(field_definition, schema_creator)
        if field_definition.type_.__struct_config__.forbid_unknown_fields:
            schema.additional_properties = False
        return schema


def openapi_config() -> OpenAPIConfig:
    return OpenAPIConfig(
        title="Memory Gateway",
        version=__version__,
        description="Self-hosted, many-user memory for agents and chat applications.",
        license=License(name="Apache-2.0", identifier="Apache-2.0"),
        components=Components(security_schemes=dict(_SECURITY_SCHEMES)),
        path="/docs",
        use_handler_docstrings=True,
        render_plugins=[
            SwaggerRenderPlugin(
                js_url=f"{_ASSETS}/swagger-ui-bundle.js",
                css_url=f"{_ASSETS}/swagger-ui.css",
                standalone_preset_js_url=f"{_ASSETS}/swagger-ui-standalone-preset.js",
                favicon=f"<link rel='icon' type='image/png' href='{_ASSETS}/favicon-32x32.png'>",
                path="/",
            )
        ],
    )


@get("/openapi.json", include_in_schema=False, sync_to_thread=False)
def get_openapi(request: Request[Any, Any, Any]) -> Response[bytes]:
    document = msgspec.json.encode(request.app.openapi_schema.to_schema())
    return Response(document, media_type="application/json")


def swagger_assets() -> Router:
    return create_static_files_router(path=_ASSETS, directories=[_FOLDER], name="swagger_ui", include_in_schema=False)
