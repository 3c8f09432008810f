from typing import Any

import pytest

from memory_gateway.engine.schemas import ContentItem, FunctionCall, Message, ToolCall
from memory_gateway.gateway.memories.messages import check_messages, check_senders
from memory_gateway.kit.errors import InvalidInput

USERS = {"teo", "anna"}


def message(**fields: Any) -> Message:
    given: dict[str, Any] = {"sender_id": "ann", "role": "user", "timestamp": 1_780_000_000_000, "content": "hi"}
    return Message(**{**given, **fields})


def calls(name: str, arguments: str) -> list[ToolCall]:
    return [ToolCall("1", FunctionCall("f", "{}")), ToolCall("2", FunctionCall(name, arguments))]


def nested(levels: int, inner: Any = "x") -> Any:
    """Objects and lists in turns."""
    for level in range(levels):
        inner = [inner, 1] if level % 2 else {"a": "x", "b": inner}
    return inner if isinstance(inner, dict) else {"a": inner}


def extras(value: Any) -> dict[str, Any]:
    return {"content": [ContentItem("text", "a", extras={"small": []}), ContentItem("text", "a", extras=value)]}


async def is_registered(user_id: str) -> bool:
    return user_id.casefold() in USERS


@pytest.mark.parametrize(
    ("faulty", "field"),
    [
        ({"timestamp": 0}, "messages.1.timestamp"),
        ({"timestamp": -1}, "messages.1.timestamp"),
        ({"timestamp": 253_402_300_800_000}, "messages.1.timestamp"),
        ({"timestamp": 253_402_300_800}, "messages.1.timestamp"),  # in seconds, the year 10000
        ({"sender_name": "x" * 129}, "messages.1.sender_name"),
        ({"content": [ContentItem("text", "a"), ContentItem("pdf", name="x" * 256)]}, "messages.1.content.1.name"),
        ({"tool_calls": calls("f", "x" * 200_001)}, "messages.1.tool_calls.1.function.arguments"),
        ({"tool_calls": calls("f" * 256, "{}")}, "messages.1.tool_calls.1.function.name"),
        ({"timestamp": 17_000_000_000_000_000}, "messages.1.timestamp"),
        ({"sender_id": "user:1"}, "messages.1.sender_id"),
        ({"sender_id": ".."}, "messages.1.sender_id"),
        ({"role": "tool"}, "messages.1.tool_call_id"),
        ({"role": "tool", "tool_call_id": ""}, "messages.1.tool_call_id"),
        ({"role": "tool", "tool_call_id": "x" * 129}, "messages.1.tool_call_id"),
        ({"tool_calls": [ToolCall("x" * 129, FunctionCall("f", "{}"))]}, "messages.1.tool_calls.0.id"),
        (extras(nested(33)), "messages.1.content.1.extras"),
        (extras(nested(32, {})), "messages.1.content.1.extras"),
        (extras(nested(900)), "messages.1.content.1.extras"),
        ({"content": "x" * 200_001}, "messages.1.content"),
        ({"content": [ContentItem("text", "a"), ContentItem("doc", "x" * 200_001)]}, "messages.1.content.1.text"),
    ],
)
def test_a_faulty_message_is_named_by_its_place(faulty: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_messages([message(), message(**faulty)])
    assert caught.value.field == field


def test_the_limits_themselves_are_fine() -> None:
    check_messages([message(timestamp=1), message(timestamp=253_402_300_799_999), message(content="x" * 200_000)])
    check_messages([message(content=""), message(role="tool", tool_call_id="call_1")])
    check_messages([message()] * 500)
    check_messages([message(**extras(nested(31))), message(**extras(nested(31, [])))])
    check_messages([message(role="tool", tool_call_id="x" * 128)])
    check_messages([message(tool_calls=[ToolCall("x" * 128, FunctionCall("f", "{}"))])])
    check_messages(
        [message(timestamp=253_402_300_799, sender_name="x" * 128, content=[ContentItem("pdf", name="x" * 255)])]
    )
    check_messages([message(role="assistant", tool_calls=calls("f" * 255, "x" * 200_000))])


@pytest.mark.parametrize("number", [0, 501])
def test_one_to_five_hundred_messages(number: int) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_messages([message()] * number)
    assert caught.value.field == "messages"


async def test_a_users_message_carries_the_callers_own_id() -> None:
    agents = [message(role="assistant", sender_id="planner"), message(role="tool", sender_id="teo", tool_call_id="1")]
    await check_senders("ann", [message(), *agents], allow_others=False, is_registered=is_registered)
    for sender in ("Ann", "teo", "guest"):
        with pytest.raises(InvalidInput) as caught:
            await check_senders(
                "ann", [message(), message(sender_id=sender)], allow_others=False, is_registered=is_registered
            )
        assert caught.value.field == "messages.1.sender_id"


async def test_other_senders_where_they_are_allowed_are_never_users_of_this_gateway() -> None:
    await check_senders("ann", [message(sender_id="guest"), message()], allow_others=True, is_registered=is_registered)
    for sender in ("teo", "Teo", "ANNA"):
        with pytest.raises(InvalidInput) as caught:
            await check_senders("ann", [message(sender_id=sender)], allow_others=True, is_registered=is_registered)
        assert caught.value.field == "messages.0.sender_id"
