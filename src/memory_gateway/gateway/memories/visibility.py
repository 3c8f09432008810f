"""Which of an upstream's items this user may see in this search.

The embedded engine keeps users apart by itself. EverOS does not: it gives everybody a session's unprocessed messages,
and an agent's cases and skills whoever's words they were made from. So the same rules stand here for every upstream.
"""

import hashlib
from collections.abc import Iterable

from msgspec import Struct

from memory_gateway.engine.schemas import MemoryKey, MemoryType, RawItem
from memory_gateway.gateway.memories.found import Found, Session
from memory_gateway.gateway.memories.ownership import Sessions
from memory_gateway.gateway.memories.texts import text_of
from memory_gateway.kit.text import collapse, fold


class Hidden(Struct, frozen=True):
    """What is not to be shown: deleted memories (and, where ids change, their contents), replaced words that the
    query alone matches, and the sessions of deleted resources."""

    memories: frozenset[MemoryKey] = frozenset()
    contents: frozenset[str] = frozenset()
    left_out: frozenset[MemoryKey] = frozenset()
    sessions: frozenset[str] = frozenset()

    def holds(self, one: Found) -> bool:
        return (
            one.key in self.memories
            or one.key in self.left_out
            or one.session_id in self.sessions
            or (bool(self.contents) and content_hash(one.key.memory_type, one.raw) in self.contents)
        )


class Visibility:
    """The rules for one search. Each session's owner is looked up once."""

    def __init__(
        self,
        sessions: Sessions,
        user_id: str,
        app_id: str,
        project_id: str,
        hidden: Hidden,
        *,
        any_case: bool,
        any_skill: bool,
    ) -> None:
        self._sessions = sessions
        self._user_id = user_id
        self._app_id = app_id
        self._project_id = project_id
        self._hidden = hidden
        self._any_case = any_case
        self._any_skill = any_skill
        self._own: dict[str | None, bool | None] = {None: None}

    async def visible(self, memories: Iterable[Found]) -> list[Found]:
        """Those that may be shown."""
        return [one for one in memories if not self._hidden.holds(one) and await self._is_readable(one)]

    async def _is_readable(self, one: Found) -> bool:
        match one.key.memory_type:
            case "profile":
                return self._is_owner(one.raw)
            case "episode":
                return self._is_owner(one.raw) and await self._is_own(one.session_id) is not False
            case "unprocessed_message":
                return await self._is_own(one.session_id) is True
            case "agent_case":
                return self._any_case or await self._is_own(one.session_id) is True
            case "agent_skill":
                return self._any_skill

    def _is_owner(self, raw: RawItem) -> bool:
        owner = raw.get("user_id", self._user_id)
        return bool(owner == self._user_id)

    async def _is_own(self, session_id: str | None) -> bool | None:
        if session_id not in self._own:
            assert session_id is not None  # noqa: S101 - None is known from the start
            session = Session(self._app_id, self._project_id, session_id)
            self._own[session_id] = await self._sessions.is_own(self._user_id, session)
        return self._own[session_id]


def content_hash(memory_type: MemoryType, raw: RawItem) -> str:
    """Tells a memory again after its session was extracted anew and it got another id.

    The same words said again at another time are another memory.
    """
    place = f"{memory_type}\0{raw.get('session_id')}\0{raw.get('timestamp')}"
    return hashlib.sha256(f"{place}\0{collapse(fold(text_of(memory_type, raw)))}".encode()).hexdigest()
