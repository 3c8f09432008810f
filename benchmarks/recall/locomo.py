"""LoCoMo: ten very long conversations of two people (Maharana et al. 2024, CC BY-NC 4.0, not part of this project).

A session is a chat, a turn is a message; pictures are told by the caption that a model gave them. What a language model
wrote about the conversations is left out.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from benchmarks.recall.conversations import Conversation, Message, Part, Question, data_file, timestamp_of

NAME = "locomo"
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
ADVERSARIAL = 5
_DEV = 5
_SESSION = re.compile(r"session_(\d+)")
_EVIDENCE = re.compile(r"D:?(\d+):0*(\d+)")

Json = dict[str, Any]


def load() -> list[Conversation]:
    """All ten: the first five to tune on, the others to report. Raises `Skipped` without the file."""
    samples: list[Json] = msgspec.json.decode(data_file(NAME, "locomo10.json").read_bytes())
    return [conversation(sample, number) for number, sample in enumerate(samples)]


def conversation(sample: Json, number: int) -> Conversation:
    """One of the file's objects; ``number`` is its place in the file."""
    said = sample["conversation"]
    messages: list[Message] = []
    units: dict[str, int] = {}
    for session in _sessions(said):
        start = datetime.strptime(said[f"session_{session}_date_time"], "%I:%M %p on %d %B, %Y")  # noqa: DTZ007  # UTC by decree
        for place, turn in enumerate(said[f"session_{session}"]):
            units[turn["dia_id"]] = len(messages)
            messages.append(
                Message(
                    session_id=f"{sample['sample_id']}:s{session}",
                    sender_id=turn["speaker"],
                    sender_name=turn["speaker"],
                    role="user",
                    timestamp=timestamp_of(start, place),
                    text=_text(turn),
                    unit=len(messages),
                )
            )
    part: Part = "dev" if number < _DEV else "test"
    return Conversation(sample["sample_id"], part, tuple(messages), tuple(_questions(sample["qa"], units)))


def _sessions(said: Json) -> list[int]:
    """Numbers of the sessions that were held: a date alone is none."""
    return sorted(int(match[1]) for name in said if (match := _SESSION.fullmatch(name)))


def _text(turn: Json) -> str:
    caption = turn.get("blip_caption")
    return f"{turn['text']} [{caption}]" if caption else str(turn["text"])


def _questions(asked: Iterable[Json], units: dict[str, int]) -> Iterator[Question]:
    for question in asked:
        if evidence := _evidence(question["evidence"], units):
            yield Question(str(question["question"]), evidence, question["category"])


def _evidence(named: Iterable[str], units: dict[str, int]) -> tuple[int, ...]:
    """The turns that the strings name, however they are written, each once; what is no turn is dropped."""
    found = (f"D{session}:{turn}" for text in named for session, turn in _EVIDENCE.findall(text))
    return tuple(dict.fromkeys(units[turn] for turn in found if turn in units))
