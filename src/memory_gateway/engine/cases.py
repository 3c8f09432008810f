"""Agent cases and skills out of tool trajectories: what was asked, what was called, how it came out."""

import json
import re
from typing import Any

from msgspec import Struct

from memory_gateway.engine.analysis import content_terms
from memory_gateway.engine.pieces import split_sentences
from memory_gateway.engine.segments import shorten

SKILL_CASES = 3
_INTENT_OVERLAP = 0.3
_TELLING_TERMS = 3
_RESULT_CHARS = 160
_GOOD, _ERROR_COST, _NO_ANSWER_COST, _WORST = 0.9, 0.6, 0.2, 0.1
_ERROR = re.compile(
    r"\b(error|errors|exception|failed|failure|traceback|timed? ?out|timeout|denied|refused|not found)\b"
    r"|错误|失败|异常|超时|拒绝|錯誤|失敗|異常|逾時",
    re.IGNORECASE,
)


class TrajectoryMessage(Struct, frozen=True):
    """A message of a segment, its text flattened."""

    sender_id: str
    role: str
    text: str
    tool_calls: list[dict[str, Any]]
    tool_call_id: str | None


class AgentCase(Struct, frozen=True):
    """One task an agent worked on, as it went."""

    segment_no: int
    skill_no: int
    task_intent: str
    approach: str
    key_insight: str | None
    quality_score: float
    pattern: str
    timestamp_ms: int


class Step(Struct, frozen=True):
    """One call and what came back; ``result`` is None where nothing did."""

    name: str
    arguments: str
    result: str | None

    @property
    def failed(self) -> bool:
        return self.result is not None and _ERROR.search(self.result) is not None


def steps(messages: list[TrajectoryMessage]) -> list[Step]:
    """The calls of a trajectory in order, each with the answer to its id."""
    results = {message.tool_call_id: message.text for message in messages if message.role == "tool"}
    return [
        Step(call["function"]["name"], call["function"]["arguments"], results.get(call["id"]))
        for message in messages
        for call in message.tool_calls
    ]


def agents(messages: list[TrajectoryMessage]) -> list[str]:
    """Every assistant that called a tool, in order."""
    return list(dict.fromkeys(m.sender_id for m in messages if m.role == "assistant" and m.tool_calls))


def task_intent(messages: list[TrajectoryMessage]) -> str:
    """What the user asked before the first call; without a user, what the assistant said it would do."""
    before: list[TrajectoryMessage] = []
    for message in messages:
        before.append(message)
        if message.tool_calls:
            break
    asked = [message.text for message in before if message.role == "user" and message.text]
    later = [message.text for message in messages if message.role in {"user", "assistant"} and message.text]
    return (asked[-1:] or later[:1] or [""])[0]


def closing_answer(messages: list[TrajectoryMessage]) -> str | None:
    """The last plain assistant message, where it ends the trajectory."""
    for message in reversed(messages):
        if message.role == "tool" or message.tool_calls:
            return None
        if message.role == "assistant" and message.text:
            return message.text
    return None


def approach(taken: list[Step], answer: str | None) -> str:
    """Numbered steps with their outcomes, then the outcome of the whole."""
    lines: list[str] = []
    for number, step in enumerate(taken, 1):
        result = "no answer" if step.result is None else shorten(step.result, _RESULT_CHARS)
        lines += [f"{number}. call {step.name}", f"   - Tried: {step.name}({step.arguments})", f"   - Result: {result}"]
    return "\n".join([*lines, "", f"Outcome: {shorten(answer, _RESULT_CHARS) if answer else 'open'}"])


def key_insight(answer: str | None) -> str | None:
    """The closing answer's first telling sentence."""
    sentences = split_sentences(answer or "")
    telling = (sentence for sentence in sentences if len(set(content_terms(sentence))) >= _TELLING_TERMS)
    return next(telling, sentences[0] if sentences else None)


def quality_score(taken: list[Step], answer: str | None) -> float:
    """0..1: failed steps and a missing answer lower it."""
    failed = sum(step.failed for step in taken) / len(taken)
    return round(max(_WORST, _GOOD - _ERROR_COST * failed - (0 if answer else _NO_ANSWER_COST)), 3)


def call_pattern(taken: list[Step]) -> str:
    """The called names in order, runs of one name as one."""
    names: list[str] = []
    for step in taken:
        if not names or names[-1] != step.name:
            names.append(step.name)
    return json.dumps(names, ensure_ascii=False)


def similar_intent(one: str, other: str) -> bool:
    """Whether two requests ask for about the same: the overlap of their content terms."""
    a, b = set(content_terms(one)), set(content_terms(other))
    return bool(a | b) and len(a & b) / len(a | b) >= _INTENT_OVERLAP


def skill_description(cases: list[AgentCase]) -> str:
    """When to use it, in the words of its best case."""
    best = max(cases, key=lambda case: case.quality_score)
    return f"When to use: {shorten(best.task_intent, 200)}"


def skill_content(cases: list[AgentCase]) -> str:
    """The common steps, and what the cases concluded."""
    names: list[str] = json.loads(cases[0].pattern)
    insights = list(dict.fromkeys(case.key_insight for case in cases if case.key_insight))
    lines = ["## Steps", *(f"{number}. {name}" for number, name in enumerate(names, 1))]
    if insights:
        lines += ["", "## Insights", *(f"- {insight}" for insight in insights[:5])]
    return "\n".join(lines)


def skill_confidence(cases: list[AgentCase]) -> float:
    """Agreement: the mean quality, weighed by how many cases say so (three cases: 3/4 of it)."""
    mean = sum(case.quality_score for case in cases) / len(cases)
    return round(mean * len(cases) / (len(cases) + 1), 3)
