"""Thinking logs as they go over the wire. ``null`` and ``""`` mean the same as leaving a field out."""

from typing import Annotated, Literal

import msgspec

Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class NewThinking(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``POST /api/v1/thinking``. A count of 0 is taken from the text or the list itself."""

    user_id: str | None = None
    content: str | None = None
    tool_calls: str | None = None
    tool_call_count: Count | None = None
    content_length: Count | None = None


class ThinkingLog(msgspec.Struct, frozen=True):
    """``tool_calls`` is a JSON array in a string, as the client wrote it; ``content_length`` counts characters."""

    id: str
    user_id: str
    content: str
    tool_calls: str
    tool_call_count: int
    content_length: int
    created_at: str


class ThinkingStats(msgspec.Struct, frozen=True):
    """``avg_content_length`` is 0 and ``latest_at`` empty where there are no logs."""

    total_logs: int
    total_tool_calls: int
    avg_content_length: float
    latest_at: str


class ThinkingSaved(msgspec.Struct, frozen=True):
    """Reply of ``POST /api/v1/thinking``."""

    status: Literal["saved"]
    thinking: ThinkingLog


class ThinkingPage(msgspec.Struct, frozen=True):
    """``total`` counts every log of the user."""

    logs: list[ThinkingLog]
    total: int


class ThinkingFound(msgspec.Struct, frozen=True):
    """Reply of ``GET /api/v1/thinking/{id}``."""

    thinking: ThinkingLog
