"""Which of an upstream's items this user may see in this search.

The embedded engine keeps users apart by itself. EverOS does not: it gives everybody a session's unprocessed messages,
and an agent's cases and skills whoever's words they were made from. So the same rules stand here for every upstream.
"""

import hashlib
from collections.abc import Iterable

from msgspec import Struct

from memory_gateway.engine.schemas import MemoryKey, MemoryType, RawItem
from memory_gateway.gateway.memories.found import Found
from memory_gateway.gateway.memories.ownership import Sessions
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
            or (bool(self.contents) and content_hash(one.key.memory_type, one.raw, one.text) in self.contents)
        )


class Visibility:
    """The rules for one search. ``any_case`` and ``any_skill``: an agent's, whoever's sessions they come from."""

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

    async def visible(self, memories: Iterable[Found]) -> list[Found]:
        """Those that may be shown."""
        left = [one for one in memories if not self._hidden.holds(one)]
        named = {one.session_id for one in left if one.session_id is not None}
        own = await self._sessions.own(self._user_id, self._app_id, self._project_id, named)
        return [one for one in left if self._is_readable(one, own.get(one.session_id or ""))]

    def _is_readable(self, one: Found, own: bool | None) -> bool:
        """``own``: the session is the user's, another user's, or nobody's (None)."""
        match one.key.memory_type:
            case "episode":
                return self._is_owner(one.raw) and own is not False
            case "profile":
                return self._is_owner(one.raw)
            case "agent_case":
                return self._any_case or own is True
            case "agent_skill":
                return self._any_skill
            case "unprocessed_message":
                return own is True

    def _is_owner(self, raw: RawItem) -> bool:
        owner = raw.get("user_id", self._user_id)
        return bool(owner == self._user_id)


def content_hash(memory_type: MemoryType, raw: RawItem, text: str) -> str:
    """Tells a memory again after its session was extracted anew and it got another id. ``text``: see `text_of`.

    The same words said again at another time are another memory.
    """
    place = f"{memory_type}\0{raw.get('session_id')}\0{raw.get('timestamp')}"
    return hashlib.sha256(f"{place}\0{collapse(fold(text))}".encode()).hexdigest()
