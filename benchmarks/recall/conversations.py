"""Conversations with questions of which it is known where their answers were said."""

import os
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from msgspec import Struct

from benchmarks.report import Skipped

FOLDER_VARIABLE = "BENCHMARK_DATA"
MINUTE_MS = 60_000
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]")
_BESIDE_THE_PROJECT = Path(__file__).parents[3] / "shared" / "benchmarks"

Part = Literal["dev", "test"]


class Message(Struct, frozen=True):
    """``unit`` numbers what a question's evidence names: the turn, or the exchange that this is a half of."""

    session_id: str
    sender_id: str
    sender_name: str
    role: Literal["user", "assistant"]
    timestamp: int
    text: str
    unit: int

    @property
    def moment(self) -> str:
        """The minute in UTC, as it stands in a transcript. No two messages of a session share it."""
        return f"{datetime.fromtimestamp(self.timestamp / 1000, UTC):%Y-%m-%d %a %H:%M}"

    @property
    def line(self) -> str:
        """As a search returns it."""
        return f"[{self.moment}] {self.sender_name}: {self.text}"


class Question(Struct, frozen=True):
    """``evidence``: the units that hold the answer, each once, never none."""

    text: str
    evidence: tuple[int, ...]
    category: int = 0


class Conversation(Struct, frozen=True):
    """What one user's memory holds. ``part``: the half that weights are tuned on, or the one that is reported."""

    user_id: str
    part: Part
    messages: tuple[Message, ...]
    questions: tuple[Question, ...]


def data_file(data_set: str, name: str) -> Path:
    """Raises `Skipped` where the data set is not there."""
    path = Path(os.environ.get(FOLDER_VARIABLE) or _BESIDE_THE_PROJECT) / data_set / name
    if not path.is_file():
        raise Skipped(f"{data_set}/{name} is not there; {FOLDER_VARIABLE} names the folder that holds {data_set}")
    return path


def timestamp_of(start: datetime, number: int) -> int:
    """Milliseconds of the session's message with this number: one a minute, from the session's start in UTC."""
    return round(start.replace(tzinfo=UTC).timestamp() * 1000) + number * MINUTE_MS


def token_estimate(text: str) -> float:
    """One token a Han character, and one for four characters of anything else."""
    han = len(_HAN.findall(text))
    return han + (len(text) - han) / 4


def unit_tokens(messages: Iterable[Message]) -> dict[int, float]:
    """What each unit costs in a prompt, as the lines that a search returns of it."""
    tokens: dict[int, float] = {}
    for message in messages:
        tokens[message.unit] = tokens.get(message.unit, 0.0) + token_estimate(message.line)
    return tokens
