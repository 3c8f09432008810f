"""The words of this room: a session, a memory by name, a memory as it was found."""

from typing import Any

from msgspec import Struct

from memory_gateway.engine.schemas import MemoryKey, MemoryType, RawItem
from memory_gateway.gateway.memories.schemas import Scope


class Session(Struct, frozen=True):
    """A session is known by its name within one app and project."""

    app_id: str
    project_id: str
    session_id: str

    def params(self, user_id: str) -> dict[str, Any]:
        return {
            "user_id": user_id,
            "app_id": self.app_id,
            "project_id": self.project_id,
            "session_id": self.session_id,
        }


class MemoryRef(Struct, frozen=True):
    """Ids are unique only within one app, project and type."""

    app_id: str
    project_id: str
    memory_type: MemoryType
    memory_id: str

    def params(self, user_id: str) -> dict[str, Any]:
        return {
            "user_id": user_id,
            "app_id": self.app_id,
            "project_id": self.project_id,
            "memory_type": self.memory_type,
            "memory_id": self.memory_id,
        }


class Found(Struct, frozen=True):
    """One raw item of a reply, with the scope that found it. ``override`` is the user's own text for it."""

    scope: Scope
    key: MemoryKey
    raw: RawItem
    session_id: str | None
    score: float | None
    text: str
    override: str | None = None
