"""Rules for the names a client chooses. Each fault names its field."""

import re
import unicodedata

from memory_gateway.kit.errors import InvalidInput

CHAT_PREFIX = "chat:"
RESOURCE_PREFIX = "resource:"
MAX_LENGTH = 128
_PLAIN = re.compile(r"[A-Za-z0-9_.@+-]{1,128}")
_UNSEEN = {"Cc", "Zl", "Zp", "Cs"}


def app_or_project(name: str | None, field: str) -> str:
    """The name, ``default`` when it is left out."""
    return "default" if name is None else plain_name(name, field)


def plain_name(name: str, field: str) -> str:
    """Apps, projects and senders: EverOS makes folders of them."""
    if not _PLAIN.fullmatch(name) or name in {".", ".."}:
        raise InvalidInput("must be 1 to 128 of A-Z a-z 0-9 _ . @ + -, and not . or ..", field=field)
    return name


def free_name(name: str, field: str) -> str:
    """Sessions and agents: any script, but nothing that a store would trim, cut or fail to show."""
    if not 1 <= len(name) <= MAX_LENGTH:
        raise InvalidInput(f"must have 1 to {MAX_LENGTH} characters", field=field)
    if name != name.strip() or any(unicodedata.category(character) in _UNSEEN for character in name):
        raise InvalidInput("must have no control characters and no outer spaces", field=field)
    return name


def session_name(session_id: str | None, conversation_id: str | None) -> str:
    """The one session that a request names; ``conversation_id`` is short for ``chat:{conversation_id}``."""
    if (session_id is None) == (conversation_id is None):
        raise InvalidInput("give exactly one of session_id and conversation_id", field="session_id")
    if conversation_id is not None:
        return chat_session(conversation_id)
    assert session_id is not None  # noqa: S101 - one of the two is given
    if session_id.startswith(RESOURCE_PREFIX):
        raise InvalidInput(f"sessions that begin with {RESOURCE_PREFIX} belong to uploaded files", field="session_id")
    return free_name(session_id, "session_id")


def chat_session(conversation_id: str) -> str:
    """The session of a chat."""
    free_name(conversation_id, "conversation_id")
    return free_name(CHAT_PREFIX + conversation_id, "conversation_id")
