"""Shapes of the accounts' routes and of their service."""

from typing import Annotated

import msgspec

from memory_gateway.gateway.accounts.user_ids import PATTERN
from memory_gateway.gateway.bodies import BodyCredentials

LONGEST_GRACE_SECONDS = 7 * 24 * 3600


class NewUserRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``POST /users``."""

    user_id: Annotated[str, msgspec.Meta(pattern=f"^{PATTERN}$", max_length=64)]


class NewUser(msgspec.Struct, frozen=True):
    """A user's new key. It is shown here and never again."""

    user_id: str
    user_key: str
    created_at: str


class User(msgspec.Struct, frozen=True):
    """One account; ``erased_at`` is the time from which it is gone for its user."""

    user_id: str
    created_at: str
    erased_at: str | None = None


class RotateRequest(BodyCredentials, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``POST /users/{user_id}/keys``: for how many seconds the old keys still open the door."""

    grace_seconds: Annotated[int, msgspec.Meta(ge=0, le=LONGEST_GRACE_SECONDS)] = 0


class UpstreamErasure(msgspec.Struct, frozen=True):
    """``remaining`` says in words what the upstream still holds, or is null."""

    erased: bool
    remaining: str | None


class ErasedUser(msgspec.Struct, frozen=True):
    """``DELETE /users/{user_id}``."""

    user_id: str
    erased: bool
    upstream: UpstreamErasure
