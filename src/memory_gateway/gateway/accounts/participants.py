"""What each room that holds rows of a user offers to the user's export and erasure."""

from collections.abc import AsyncIterator
from typing import Any, Protocol


class HoldsRows(Protocol):
    """A room with rows of users."""

    def export(self, user_id: str) -> AsyncIterator[dict[str, Any]]:
        """Every row of this user, as JSON-ready objects with a ``kind`` of ``a-z_``."""
        ...


class Participant(HoldsRows, Protocol):
    """A room whose rows go with the user. Files are no room's concern: all under a user's id is taken as a whole."""

    async def erase(self, user_id: str) -> None:
        """Delete every row of this user. Called again after an interruption, so it must not mind finding none."""
        ...
