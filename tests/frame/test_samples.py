"""What the demo ships is small, real and readable."""

import base64

import msgspec
import pytest

from memory_gateway.demo.conversation import conversation, sample
from memory_gateway.engine.schemas import Message

NOON = 1_790_000_000_000  # 2026-09-21T14:13:20Z
DAY = 86_400_000
MIDNIGHT = NOON - NOON % DAY


def messages() -> list[Message]:
    return msgspec.convert(conversation(lambda: NOON), list[Message])


def test_the_conversation_has_the_shape_of_the_add_call() -> None:
    assert len(messages()) == 46
    assert {message.role for message in messages()} == {"user", "assistant", "tool"}
    assert {message.sender_id for message in messages()} == {"lin", "planner"}


def test_its_days_become_times_in_order_that_lie_in_the_past() -> None:
    times = [message.timestamp for message in messages()]
    assert times[0] == MIDNIGHT - 9 * DAY + (8 * 60 + 2) * 60_000
    assert times == sorted(set(times))
    assert times[-1] < NOON


def test_a_picture_travels_as_base64_with_its_extension() -> None:
    (item,) = [
        item for message in messages() if isinstance(message.content, list) for item in message.content if item.base64
    ]
    assert (item.type, item.name, item.ext) == ("image", "年糕-化验单.png", "png")
    assert item.base64 is not None
    assert base64.b64decode(item.base64) == sample("vet-note.png")


def test_every_tool_reply_answers_a_call_of_the_agent() -> None:
    called = [call.id for message in messages() for call in message.tool_calls or ()]
    answered = [message.tool_call_id for message in messages() if message.role == "tool"]
    assert called == answered == ["call_1", "call_2", "call_3"]


@pytest.mark.parametrize(
    ("name", "starts", "most_kib"),
    [
        ("launch-brief.pdf", b"%PDF-", 60),
        ("supplier-notes.docx", b"PK\x03\x04", 40),
        ("whiteboard.png", b"\x89PNG", 120),
        ("vet-note.png", b"\x89PNG", 120),
    ],
)
def test_a_sample_is_what_its_name_says_and_small(name: str, starts: bytes, most_kib: int) -> None:
    assert sample(name).startswith(starts)
    assert len(sample(name)) < most_kib * 1024
