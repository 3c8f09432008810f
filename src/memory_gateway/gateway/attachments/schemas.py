"""What an attachment is to the rest of the gateway: a file, its session and the name by which it is found."""

from typing import Literal

from msgspec import Struct

Source = Literal["resource_upload", "memory_add_uri", "memory_add_base64"]


class Attachment(Struct, frozen=True):
    """One live mapping. ``folded_name`` is the name made ready for matching."""

    session_id: str
    content_type: str
    name: str
    internal_uri: str
    folded_name: str


class AttachmentView(Struct, frozen=True):
    """An attachment as a search result shows it."""

    type: str
    name: str
    internal_uri: str


class NewAttachment(Struct, frozen=True):
    """A mapping to be written: what its maker decides of a row of ``memory_attachments``."""

    id: str
    user_id: str
    app_id: str
    project_id: str
    session_id: str
    content_type: str
    name: str
    internal_uri: str
    source: Source
    created_at: str
    sha256: str | None = None
    resource_id: str | None = None


class StagedAttachments(Struct, frozen=True):
    """What one add is about to attach: rows not yet written, and the folders this call alone has filled."""

    user_id: str
    rows: tuple[NewAttachment, ...] = ()
    folders: tuple[str, ...] = ()


def resource_session(user_id: str, resource_id: str) -> str:
    """The session that holds a resource and nothing else; neither id can hold a colon."""
    return f"resource:{user_id}:{resource_id}"
