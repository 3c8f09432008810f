"""What a message must be before anything is written. Each fault names its field."""

from collections.abc import Awaitable, Callable, Sequence

from memory_gateway.engine.schemas import Message
from memory_gateway.gateway.memories.names import plain_name
from memory_gateway.kit.errors import InvalidInput

MAX_MESSAGES = 500
MAX_TEXT = 200_000
_END_OF_YEAR_9999_MS = 253_402_300_799_999


def check_messages(messages: Sequence[Message]) -> None:
    """Number, senders, times and lengths; what else a message may be is the upstream's to say."""
    if not 1 <= len(messages) <= MAX_MESSAGES:
        raise InvalidInput(f"must hold 1 to {MAX_MESSAGES} messages", field="messages")
    for number, message in enumerate(messages):
        _check_message(message, f"messages.{number}")


def _check_message(message: Message, field: str) -> None:
    plain_name(message.sender_id, f"{field}.sender_id")
    if not 0 < message.timestamp <= _END_OF_YEAR_9999_MS:
        raise InvalidInput("must be a time in milliseconds, above 0 and within year 9999", field=f"{field}.timestamp")
    if message.role == "tool" and not message.tool_call_id:
        raise InvalidInput("required in a tool message", field=f"{field}.tool_call_id")
    if isinstance(message.content, str):
        return _check_text(message.content, f"{field}.content")
    for place, item in enumerate(message.content):
        _check_text(item.text or "", f"{field}.content.{place}.text")
    return None


def _check_text(text: str, field: str) -> None:
    if len(text) > MAX_TEXT:
        raise InvalidInput(f"must have at most {MAX_TEXT:,} characters", field=field)


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
