"""MemoryBank-CN: people's Chinese chats with a companion over ten days (Zhong et al. 2023), evidence labelled by hand.

A date is a chat. What a question is answered from is an exchange: what the person said and the companion's answer.
"""

from datetime import datetime
from typing import Any

import msgspec

from benchmarks.recall.conversations import Conversation, Message, Question, data_file, timestamp_of

NAME = "memorybank-cn"
_MORNING = 9

Json = dict[str, Any]


def load() -> list[Conversation]:
    """The people of whom a question has labelled evidence. Raises `Skipped` without the files."""
    people: Json = msgspec.json.decode(data_file(NAME, "memory_bank_cn.json").read_bytes())
    evidence: dict[str, Json] = msgspec.json.decode(data_file(NAME, "evidence.json").read_bytes())
    asked: dict[str, list[str]] = {}
    for line in data_file(NAME, "probing_questions_cn.jsonl").read_bytes().splitlines():
        asked |= msgspec.json.decode(line)
    return [
        conversation(number, name, person["history"], asked[name], evidence[name])
        for number, (name, person) in enumerate(people.items(), 1)
        if evidence.get(name)
    ]


def conversation(
    number: int, name: str, history: dict[str, list[Json]], asked: list[str], evidence: dict[str, list[int]]
) -> Conversation:
    """One person's; ``evidence`` is by the question's place in ``asked`` and names exchanges in order of date."""
    user_id = f"person-{number}"
    messages: list[Message] = []
    for date, exchanges in sorted(history.items()):
        session_id, start = f"{user_id}:{date}", datetime.fromisoformat(date).replace(hour=_MORNING)
        for place, exchange in enumerate(exchanges):
            unit, said, answered = (
                len(messages) // 2,
                timestamp_of(start, 2 * place),
                timestamp_of(start, 2 * place + 1),
            )
            messages += (
                Message(session_id, user_id, name, "user", said, exchange["query"], unit),
                Message(session_id, "AI", "AI", "assistant", answered, exchange["response"], unit),
            )
    questions = tuple(Question(asked[int(place)], tuple(dict.fromkeys(units))) for place, units in evidence.items())
    return Conversation(user_id, "test", tuple(messages), questions)
