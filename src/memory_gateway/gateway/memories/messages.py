"""What a message must be before anything is written. Each fault names its field."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from memory_gateway.engine.pieces import normal_timestamp
from memory_gateway.engine.schemas import MOST_MESSAGES, Message, ToolCall
from memory_gateway.gateway.names import plain_name
from memory_gateway.kit.errors import InvalidInput

MAX_TEXT = 200_000
# Stand in every piece of their message, so a long one would be stored and indexed many times over
MAX_SENDER_NAME = 128
MAX_NAME = 255
MAX_CALL_ID = 128
# Far below what a JSON encoder can follow, so that what was stored can always be shown again
MAX_DEPTH = 32
_END_OF_YEAR_9999_MS = 253_402_300_799_999


def check_messages(messages: Sequence[Message]) -> None:
    """Number, senders, times and lengths; what else a message may be is the upstream's to say."""
    if not 1 <= len(messages) <= MOST_MESSAGES:
        raise InvalidInput(f"must hold 1 to {MOST_MESSAGES} messages", field="messages")
    for number, message in enumerate(messages):
        _check_message(message, f"messages.{number}")


def _check_message(message: Message, field: str) -> None:
    plain_name(message.sender_id, f"{field}.sender_id")
    _check_text(message.sender_name, f"{field}.sender_name", MAX_SENDER_NAME)
    if not 0 < normal_timestamp(message.timestamp) <= _END_OF_YEAR_9999_MS:
        reason = "must be a time in milliseconds (below 1e12: in seconds), above 0 and before the year 10000"
        raise InvalidInput(reason, field=f"{field}.timestamp")
    if message.role == "tool" and not message.tool_call_id:
        raise InvalidInput("required in a tool message", field=f"{field}.tool_call_id")
    _check_text(message.tool_call_id, f"{field}.tool_call_id", MAX_CALL_ID)
    for place, call in enumerate(message.tool_calls or ()):
        _check_call(call, f"{field}.tool_calls.{place}")
    if isinstance(message.content, str):
        return _check_text(message.content, f"{field}.content")
    for place, item in enumerate(message.content):
        _check_text(item.text, f"{field}.content.{place}.text")
        _check_text(item.name, f"{field}.content.{place}.name", MAX_NAME)
        _check_depth(item.extras, f"{field}.content.{place}.extras")
    return None


def _check_call(call: ToolCall, field: str) -> None:
    _check_text(call.id, f"{field}.id", MAX_CALL_ID)
    _check_text(call.function.name, f"{field}.function.name", MAX_NAME)
    _check_text(call.function.arguments, f"{field}.function.arguments")


def _check_text(text: str | None, field: str, most: int = MAX_TEXT) -> None:
    if text is not None and len(text) > most:
        raise InvalidInput(f"must have at most {most:,} characters", field=field)


def _check_depth(value: Any, field: str) -> None:
    """An object or list in ``MAX_DEPTH`` others is one too deep."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level if isinstance(outer, dict | list) for inner in _members(outer)]
    if any(isinstance(inner, dict | list) for inner in level):
        raise InvalidInput(f"must be nested at most {MAX_DEPTH} levels deep", field=field)


def _members(outer: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return outer.values() if isinstance(outer, dict) else outer


async def check_senders(
    user_id: str, messages: Sequence[Message], *, allow_others: bool, is_registered: Callable[[str], Awaitable[bool]]
) -> None:
    """The user's own words carry the user's own id. With ``allow_others`` they may carry others', of no user here."""
    refused: dict[str, bool] = {user_id: False}
    for number, message in enumerate(messages):
        sender = message.sender_id
        if message.role != "user":
            continue
        if sender not in refused:
            refused[sender] = not allow_others or await is_registered(sender)
        if refused[sender]:
            reason = "is another user's id" if allow_others else "must be your own user_id in a user's message"
            raise InvalidInput(reason, field=f"messages.{number}.sender_id")
