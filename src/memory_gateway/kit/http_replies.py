"""What a route returns, as JSON and nothing else."""

from typing import Any

import msgspec
from litestar import Request, Response
from litestar.response.base import ASGIResponse

_encode = msgspec.json.Encoder().encode


class JsonReply(Response[Any]):
    """A ``response_class`` for routes that return structs.

    The framework's own provides for cookies, background work and other media types, which takes longer than reading an
    entry and encoding it.
    """

    def __init__(self, content: Any, *, status_code: int = 200, **_: Any) -> None:
        self.content = content
        self.status_code = status_code

    def to_asgi_response(self, app: Any, request: Request[Any, Any, Any], **_: Any) -> ASGIResponse:  # noqa: ARG002
        return _Encoded(_encode(self.content), self.status_code or 200)


class _Encoded(ASGIResponse):
    def __init__(self, body: bytes, status_code: int) -> None:
        self.body = body
        self.status_code = status_code
        self.background = None
        self.is_head_response = False

    def encode_headers(self) -> list[tuple[bytes, bytes]]:
        return [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(self.body))]
