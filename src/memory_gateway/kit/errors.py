"""Every error the product raises on purpose. The class carries HTTP status and code; the message is for the caller.

MemoryGatewayError                   500 internal_error
├── MalformedRequest                 400 malformed_request
├── Unauthorized                     401 unauthorized
├── Forbidden                        403 forbidden
├── NotFound                         404 not_found
├── Conflict                         409 conflict
├── PayloadTooLarge                  413 payload_too_large
├── UnsupportedFormat                415 unsupported_format
├── InvalidInput                     422 invalid_input        (names the field)
│   └── UriNotAllowed                422 uri_not_allowed
├── TooManyRequests                  429 too_many_requests    (knows when to come back)
├── UpstreamRefused                  the upstream's own status, its code under details.upstream
├── UpstreamUnreachable              502 upstream_unreachable
├── StorageUnavailable               503 storage_unavailable
├── EmbeddingUnavailable             503 embedding_unavailable
└── UpstreamTimeout                  504 upstream_timeout
"""

from typing import Any, ClassVar


class MemoryGatewayError(Exception):
    """Root of all errors raised on purpose."""

    status: int = 500
    code: ClassVar[str] = "internal_error"

    def __init__(self, message: str = "internal error", *, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


class MalformedRequest(MemoryGatewayError):
    """The body or a header cannot be read at all."""

    status = 400
    code = "malformed_request"


class Unauthorized(MemoryGatewayError):
    """No key, an unknown user or a wrong key: the three look the same from outside."""

    status = 401
    code = "unauthorized"

    def __init__(self, message: str = "user id and user key do not match") -> None:
        super().__init__(message)


class Forbidden(MemoryGatewayError):
    """The caller is known and may not do this."""

    status = 403
    code = "forbidden"


class NotFound(MemoryGatewayError):
    """No such object, or someone else's: the two look the same from outside."""

    status = 404
    code = "not_found"

    def __init__(self, message: str = "not found") -> None:
        super().__init__(message)


class Conflict(MemoryGatewayError):
    """The request contradicts what is stored."""

    status = 409
    code = "conflict"


class PayloadTooLarge(MemoryGatewayError):
    """A body or a file above its limit."""

    status = 413
    code = "payload_too_large"


class UnsupportedFormat(MemoryGatewayError):
    """A content type that the endpoint does not read."""

    status = 415
    code = "unsupported_format"


class InvalidInput(MemoryGatewayError):
    """A field that breaks its rule. ``field`` is a dotted path such as ``messages.0.content``."""

    status = 422
    code = "invalid_input"

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(f"{field}: {message}", details={"field": field})
        self.field = field


class UriNotAllowed(InvalidInput):
    """A client's URI that this upstream would open and that no setting allows."""

    code = "uri_not_allowed"


class TooManyRequests(MemoryGatewayError):
    """A rate limit. ``retry_after`` is in seconds."""

    status = 429
    code = "too_many_requests"

    def __init__(self, message: str, *, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class UpstreamRefused(MemoryGatewayError):
    """The upstream answered with an HTTP error.

    ``status`` and ``upstream_code`` are the upstream's. The message is forwarded only where it is about the
    request itself: its other messages quote server paths and provider texts.
    """

    code = "upstream_error"

    def __init__(self, status: int, upstream_code: str, message: str) -> None:
        super().__init__(message, details={"upstream": {"code": upstream_code}})
        self.status = status
        self.upstream_code = upstream_code


class UpstreamUnreachable(MemoryGatewayError):
    """The upstream cannot be reached or talks nonsense."""

    status = 502
    code = "upstream_unreachable"


class StorageUnavailable(MemoryGatewayError):
    """The database, the disk or the bucket cannot take the request now; nothing of it was stored."""

    status = 503
    code = "storage_unavailable"


class EmbeddingUnavailable(MemoryGatewayError):
    """The embedding model cannot be loaded or reached now; the message names no path and quotes no provider."""

    status = 503
    code = "embedding_unavailable"


class UpstreamTimeout(MemoryGatewayError):
    """The upstream did not answer in time."""

    status = 504
    code = "upstream_timeout"
