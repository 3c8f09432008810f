"""Stored rows in the shape of EverOS's items."""

import json
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from memory_gateway.engine import cases
from memory_gateway.engine.cases import AgentCase
from memory_gateway.engine.memory_ids import Reference, memory_id, short_id, skill_name
from memory_gateway.engine.recall import Segment
from memory_gateway.engine.schemas import RawItem
from memory_gateway.engine.segments import Turn, subject, summary, transcript
from memory_gateway.kit.clock import rfc3339
from memory_gateway.storage.port import Row


class ItemPlace(Struct, frozen=True):
    """Whose item it is and where."""

    owner_id: str
    app_id: str
    project_id: str
    space_no: int | None = None  # of another caller's space, which only a shared agent's items come from

    def reference(self, number: int) -> Reference:
        return Reference(number, self.space_no)


ScoredTurn = tuple[int, float]
"""The number of a turn among the query's best, and its score."""


def iso_time(timestamp_ms: int) -> str:
    """UTC; whole seconds without a fraction, as EverOS writes them."""
    return rfc3339(timestamp_ms).replace(".000Z", "Z")


def episode_item(place: ItemPlace, segment: Segment, turns: list[Turn], *, partly_hidden: bool) -> RawItem:
    """An episode as `get` lists it.

    Subject and summary are stored when a segment closes; before that, and where turns are hidden, they are made anew.
    """
    stored = bool(segment.subject) and not partly_hidden
    return {
        "id": memory_id(place.owner_id, "ep", segment.created_ms, place.reference(segment.segment_no)),
        "user_id": place.owner_id,
        "app_id": place.app_id,
        "project_id": place.project_id,
        "session_id": segment.session_id,
        "timestamp": iso_time(segment.last_ms),
        "sender_ids": json.loads(segment.senders),
        "summary": segment.summary if stored else summary(turns),
        "subject": segment.subject if stored else subject(turns),
        "episode": transcript(turns),
        "type": "Conversation",
    }


class ReadyEpisode(Struct, frozen=True):
    """An episode but for its scores. ``facts``: id and content by turn. Searches share it: nobody may write to it."""

    item: RawItem
    facts: dict[int, tuple[str, str]]

    def scored(self, score: float, best: Sequence[ScoredTurn]) -> RawItem:
        """The item, its facts those of its turns that are among the query's best, best first."""
        facts = [
            {"id": fact[0], "content": fact[1], "score": turn_score}
            for turn_no, turn_score in best
            if (fact := self.facts.get(turn_no)) is not None
        ]
        return {
            **self.item,
            "sender_ids": list(self.item["sender_ids"]),
            "score": score,
            "atomic_facts": facts,
        }


def ready_episode(place: ItemPlace, segment: Segment, turns: list[Turn], *, partly_hidden: bool) -> ReadyEpisode:
    """Of the turns that may be seen."""
    facts = {
        turn.turn_no: (memory_id(place.owner_id, "af", segment.created_ms, place.reference(turn.turn_no)), turn.line)
        for turn in turns
    }
    return ReadyEpisode(episode_item(place, segment, turns, partly_hidden=partly_hidden), facts)


def case_item(place: ItemPlace, segment: Segment, case: AgentCase) -> RawItem:
    """An agent case as `get` lists it."""
    return {
        "id": memory_id(place.owner_id, "ac", segment.created_ms, place.reference(segment.segment_no)),
        "agent_id": place.owner_id,
        "app_id": place.app_id,
        "project_id": place.project_id,
        "session_id": segment.session_id,
        "task_intent": case.task_intent,
        "approach": case.approach,
        "quality_score": case.quality_score,
        "key_insight": case.key_insight,
        "timestamp": iso_time(case.timestamp_ms),
    }


def skill_item(place: ItemPlace, found: list[AgentCase], segments: dict[int, Segment]) -> RawItem:
    """An agent skill as `get` lists it, from three or more cases that went the same way."""
    name = skill_name(place.reference(found[0].skill_no))
    return {
        "id": f"{place.owner_id}_{name}",
        "agent_id": place.owner_id,
        "app_id": place.app_id,
        "project_id": place.project_id,
        "name": name,
        "description": cases.skill_description(found),
        "content": cases.skill_content(found),
        "confidence": cases.skill_confidence(found),
        "maturity_score": round(min(1.0, len(found) / 10), 3),
        "source_case_ids": [
            short_id("ac", segments[case.segment_no].created_ms, place.reference(case.segment_no)) for case in found
        ],
    }


def unprocessed_item(place: ItemPlace, session_id: str, row: Row) -> RawItem:
    """A message of a session's open segment, from a row of `store.MESSAGES_OF_SEGMENT`."""
    _, identifier, sender_id, sender_name, role, content, timestamp_ms, tool_calls, tool_call_id = row
    parsed_calls: Any = json.loads(tool_calls) if tool_calls else None
    return {
        "id": identifier,
        "app_id": place.app_id,
        "project_id": place.project_id,
        "session_id": session_id,
        "sender_id": sender_id,
        "sender_name": sender_name,
        "role": role,
        "content": json.loads(content),
        "timestamp": iso_time(timestamp_ms),
        "tool_calls": parsed_calls,
        "tool_call_id": tool_call_id,
    }
