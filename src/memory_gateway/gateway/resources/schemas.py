"""A resource is a file that a user keeps: its bytes in the file store, its text in the upstream's memory."""

from typing import Literal

from msgspec import Struct

from memory_gateway.engine.schemas import ContentType

FOLDER = "resources"
Status = Literal["stored", "indexed", "failed"]


class Resource(Struct, frozen=True):
    """As clients see it. ``uri`` is ``resource://{id}``; where the file really lies is not told here.

    ``status``: ``stored`` while it is being indexed, then ``indexed``, or ``failed`` with an ``error``.
    """

    id: str
    uri: str
    name: str
    title: str | None
    content_type: ContentType
    mime_type: str
    size: int
    sha256: str
    app_id: str
    project_id: str
    session_id: str
    status: Status
    error: str | None
    created_at: str
    deleted_at: str | None


class UploadReply(Struct, frozen=True):
    """``created`` is false where the same bytes were there already."""

    resource: Resource
    created: bool


class ResourcePage(Struct, frozen=True):
    """Newest first. ``next_cursor`` is null on the last page."""

    resources: list[Resource]
    next_cursor: str | None


class StoredResource(Struct, frozen=True):
    """A resource with what only the gateway knows of it."""

    resource: Resource
    user_id: str
    stored_name: str
    internal_uri: str

    @property
    def folder(self) -> str:
        """The prefix of its file, and of nothing else."""
        return f"{self.user_id}/{FOLDER}/{self.resource.id}"

    @property
    def key(self) -> str:
        return f"{self.folder}/{self.stored_name}"


class UploadFields(Struct, frozen=True):
    """What a client says of an upload besides its bytes."""

    app_id: str = "default"
    project_id: str = "default"
    title: str | None = None
