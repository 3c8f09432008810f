"""Cursors of the list: the place of the last resource seen, so that new ones never shift a page."""

import base64
from typing import NamedTuple

from memory_gateway.gateway.resources.schemas import Resource
from memory_gateway.kit.clock import epoch_ms, rfc3339
from memory_gateway.kit.errors import InvalidInput


class Position(NamedTuple):
    """Resources that come later in the list are older than this, or as old with a smaller id."""

    created_at: str
    resource_id: str


START = Position("~", "")  # sorts after every time


def cursor_of(resource: Resource) -> str:
    """Opaque to clients."""
    return base64.urlsafe_b64encode(f"{resource.created_at} {resource.id}".encode()).decode("ascii").rstrip("=")


def position(cursor: str | None) -> Position:
    """Where a list goes on; `InvalidInput` for what is no cursor."""
    if cursor is None:
        return START
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
        created_at, _, resource_id = text.partition(" ")
        if rfc3339(epoch_ms(created_at)) == created_at and resource_id and resource_id.isprintable():
            return Position(created_at, resource_id)
    except (ValueError, OverflowError):
        pass  # said below
    raise InvalidInput("not a cursor of this list", field="cursor")
