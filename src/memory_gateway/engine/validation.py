"""EverOS's rules for requests, in its words: the first fault is reported as ``<reason>: <dotted path>``."""

import re

from msgspec import UNSET

from memory_gateway.engine.filters import refused
from memory_gateway.engine.pieces import normal_timestamp
from memory_gateway.engine.schemas import MOST_MESSAGES, AddRequest, FlushRequest, GetRequest, Message, SearchRequest

_NAME = re.compile(r"[a-zA-Z0-9_.@+-]+")
_LAST_MS = 253_402_300_799_999  # the end of the year 9999


def check_add(request: AddRequest) -> None:
    """Raises `UpstreamRefused` (422) for the first fault."""
    check_place(request)
    if not 1 <= len(request.messages) <= MOST_MESSAGES:
        bound = f"at most {MOST_MESSAGES} items" if request.messages else "at least 1 item"
        raise refused(f"List should have {bound} after validation, not {len(request.messages)}: messages")
    for number, message in enumerate(request.messages):
        _check_message(message, f"messages.{number}")


def check_place(request: AddRequest | FlushRequest) -> None:
    """Session, app and project of a write."""
    _text_length("session_id", request.session_id)
    for field, value in (("app_id", request.app_id), ("project_id", request.project_id)):
        _name(field, value)
        if value == f"default_{field.removesuffix('_id')}":
            raise refused(f"Value error, '{value}' is the directory name of the default scope; use 'default': {field}")


def check_search(request: SearchRequest) -> None:
    """Raises `UpstreamRefused` (422) for the first fault."""
    if not request.query:
        raise refused("Search query cannot be empty.")
    _check_owner_length(request)
    for field, value in (("radius", request.radius), ("min_score", request.min_score)):
        if value is not UNSET:
            _within(field, value, 0, 1)
    if request.top_k != -1 and not 1 <= request.top_k <= 100:
        raise refused("Value error, top_k must be -1 or in 1..100")
    _check_one_owner(request)


def check_get(request: GetRequest) -> None:
    """Raises `UpstreamRefused` (422) for the first fault."""
    _check_owner_length(request)
    _within("page", request.page, 1, None)
    _within("page_size", request.page_size, 1, 100)
    _check_one_owner(request)
    owner = "user_id" if request.agent_id is UNSET else "agent_id"
    if (owner == "agent_id") != (request.memory_type in {"agent_case", "agent_skill"}):
        raise refused(f"Value error, memory_type '{request.memory_type}' is not valid when {owner} is set")


def _within(field: str, value: float, least: int, most: int | None) -> None:
    if value < least:
        raise refused(f"Input should be greater than or equal to {least}: {field}")
    if most is not None and value > most:
        raise refused(f"Input should be less than or equal to {most}: {field}")


def _check_owner_length(request: SearchRequest | GetRequest) -> None:
    for field, value in (("user_id", request.user_id), ("agent_id", request.agent_id)):
        if value is not UNSET and not value:
            raise refused(f"String should have at least 1 character: {field}")


def _check_one_owner(request: SearchRequest | GetRequest) -> None:
    if (request.user_id is UNSET) == (request.agent_id is UNSET):
        raise refused("Value error, exactly one of user_id / agent_id must be provided")


def _check_message(message: Message, path: str) -> None:
    _name(f"{path}.sender_id", message.sender_id)
    if message.timestamp <= 0:
        raise refused(f"Input should be greater than 0: {path}.timestamp")
    if normal_timestamp(message.timestamp) > _LAST_MS:
        raise refused(f"Input should be a time before the year 10000: {path}.timestamp")
    if message.role == "tool" and not message.tool_call_id:
        raise refused(f"Value error, tool_call_id is required when role is 'tool': {path}")


def _text_length(field: str, text: str) -> None:
    if not text:
        raise refused(f"String should have at least 1 character: {field}")
    if len(text) > 128:
        raise refused(f"String should have at most 128 characters: {field}")


def _name(field: str, value: str) -> None:
    _text_length(field, value)
    if not _NAME.fullmatch(value):
        raise refused(f"String should match pattern '^[a-zA-Z0-9_.@+-]+$': {field}")
    if value in {".", ".."}:
        raise refused(f"Value error, '.' and '..' are reserved (path traversal): {field}")
