"""The gateway's front door over a fake upstream, with a few routes of a room that does not exist."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from litestar import Litestar, get, post, put
from litestar.params import FromPath, FromQuery, JSONBody
from litestar.types import ControllerRouterHandler
from multipart import MultipartError

from memory_gateway.blobs.folder import FolderBlobs
from memory_gateway.blobs.port import BlobStore
from memory_gateway.gateway.accounts.erasure import UserErasure
from memory_gateway.gateway.accounts.export import UserExport
from memory_gateway.gateway.accounts.participants import Participant
from memory_gateway.gateway.accounts.service import Accounts
from memory_gateway.gateway.app import build_app
from memory_gateway.gateway.audit.service import Audit
from memory_gateway.gateway.health import Health
from memory_gateway.gateway.http import (
    CREDENTIALS_IN_FORM,
    USER_SECURITY,
    BodyCredentials,
    GatewayRequest,
    admit_form,
    current_user,
    require_user,
    responses,
)
from memory_gateway.gateway.metrics import Metrics
from memory_gateway.kit.errors import InvalidInput, TooManyRequests
from memory_gateway.storage.port import Database
from tests.fakes.clock import TurnedClock
from tests.fakes.upstream import EMBEDDED_LIKE, RecordingUpstream

ADMIN_KEY = "the-admin-key"


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a note; ``size`` 7 is forbidden by a rule of the struct."""

    base64: str
    size: int = 0

    def __post_init__(self) -> None:
        if self.size == 7:
            raise ValueError("size: must not be 7")


class Note(BodyCredentials, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the fake room takes."""

    text: Annotated[str, msgspec.Meta(max_length=1000)]
    parts: list[Part] = msgspec.field(default_factory=list)
    extras: dict[str, Any] = msgspec.field(default_factory=dict)


@post("/notes", guards=[require_user], security=USER_SECURITY, responses=responses(401, 403, 413, 415, 422))
async def add_note(request: GatewayRequest, data: JSONBody[Note]) -> dict[str, str]:
    return {"user_id": current_user(request), "text": data.text}


@put("/notes/{note_id:str}", guards=[require_user], security=USER_SECURITY, responses=responses(401, 403, 422))
async def put_note(request: GatewayRequest, note_id: FromPath[str], data: JSONBody[Note]) -> dict[str, str]:
    return {"user_id": current_user(request), "note_id": note_id, "text": data.text}


@get("/notes", guards=[require_user], security=USER_SECURITY, responses=responses(401, 422))
async def list_notes(
    request: GatewayRequest, limit: FromQuery[int] = 5, cursor: FromQuery[str | None] = None
) -> dict[str, str | int | None]:
    return {"user_id": current_user(request), "limit": limit, "cursor": cursor}


@post("/uploads", guards=[require_user], opt=CREDENTIALS_IN_FORM, security=USER_SECURITY, responses=responses(401))
async def upload(request: GatewayRequest) -> dict[str, str]:
    form = await request.form()
    return {"user_id": await admit_form(request, form.get("user_id"), form.get("user_key"))}


@get("/faults/{name:str}", guards=[require_user], security=USER_SECURITY, responses=responses(401, 422))
async def fault(name: FromPath[str]) -> None:
    faults: dict[str, Exception] = {
        "bug": RuntimeError("secret of /var/lib/gateway"),
        "depth": RecursionError("maximum recursion depth exceeded"),
        "field": InvalidInput("is wrong", field="messages.0.content"),
        "form": MultipartError("boundary of the client's own words"),
        "rate": TooManyRequests("slow down", retry_after=1.2),
    }
    raise faults[name]


NOTES: Sequence[ControllerRouterHandler] = (add_note, put_note, list_notes, upload, fault)


class FrontDoor:
    """Everything that a test looks at or turns."""

    def __init__(
        self,
        database: Database,
        folder: Path,
        participants: Sequence[Participant] = (),
        blobs: BlobStore | None = None,
    ) -> None:
        self.database = database
        self.clock = TurnedClock()
        self.storage_root = folder / "storage"
        self.blobs = blobs or FolderBlobs(self.storage_root)
        self.upstream = RecordingUpstream(EMBEDDED_LIKE)
        self.accounts = Accounts(database, self.clock, b"key secret")
        self.audit = Audit(database, self.clock)
        self.user_export = UserExport(
            self.audit, [self.accounts, *participants], self.upstream, self.blobs, folder / "tmp"
        )
        self.user_erasure = UserErasure(database, self.clock, participants, self.upstream, self.blobs)
        self.metrics = Metrics()
        self.free_bytes = 1 << 40

    def app(
        self,
        *,
        max_body_bytes: int = 100_000,
        rate_limit: float | None = None,
        auth_failure_limit: float = 30.0,
        route_handlers: Sequence[ControllerRouterHandler] = NOTES,
    ) -> Litestar:
        return build_app(
            accounts=self.accounts,
            user_export=self.user_export,
            user_erasure=self.user_erasure,
            health=Health(self.database, self.upstream, lambda: self.free_bytes, self.blobs),
            metrics=self.metrics,
            admin_key=ADMIN_KEY.encode(),
            max_body_bytes=max_body_bytes,
            rate_limit=rate_limit,
            auth_failure_limit=auth_failure_limit,
            route_handlers=route_handlers,
        )

    async def headers_of(self, user_id: str) -> dict[str, str]:
        """Register the user; the headers that open the door."""
        new_user = await self.accounts.create(user_id)
        return {"X-User-ID": user_id, "X-User-Key": new_user.user_key}
