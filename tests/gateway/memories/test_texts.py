from typing import Any

import pytest

from memory_gateway.engine.schemas import MemoryType
from memory_gateway.gateway.memories.texts import text_of
from tests.fakes import items


def test_an_episode_reads_as_its_text_or_else_its_summary() -> None:
    assert text_of("episode", items.episode("e1", text="Ann said: 每天看早报。")) == "Ann said: 每天看早报。"
    assert text_of("episode", {"episode": "", "summary": "In short."}) == "In short."
    assert text_of("episode", {"episode": None, "summary": None}) == ""


def test_a_profile_reads_as_lines() -> None:
    raw = items.profile(
        summary="Prefers tea.",
        explicit_info=({"category": "Work", "description": "Runs the falcon service", "evidence": "said so"},),
        implicit_traits=({"trait": "Careful", "description": "Checks twice", "basis": "wording"},),
    )
    assert text_of("profile", raw) == "Prefers tea.\nWork: Runs the falcon service\nCareful: Checks twice"


def test_an_agent_case_reads_as_intent_and_approach() -> None:
    raw = items.agent_case("c1", task_intent="Fix the 502.", approach="1. read logs")
    assert text_of("agent_case", raw) == "Fix the 502.\n1. read logs"


def test_an_agent_skill_reads_as_name_description_and_content() -> None:
    raw = items.agent_skill("s1", name="diagnose", description="When an API fails", content="1. read logs")
    assert text_of("agent_skill", raw) == "diagnose\nWhen an API fails\n1. read logs"


def test_an_unprocessed_message_reads_as_its_text_and_its_items_without_any_base64() -> None:
    content: list[dict[str, Any]] = [
        {"type": "text", "text": "See the whiteboard."},
        {"type": "image", "base64": "aVZCT1J3MEtHZ28=", "name": "board.png", "parsed_content": "Three boxes."},
        {"type": "audio", "base64": "UklGRg==", "name": None},
    ]
    raw = items.unprocessed_message("m1", content=content)
    assert text_of("unprocessed_message", raw) == "See the whiteboard.\n[IMAGE: board.png]\nThree boxes.\n[AUDIO]"
    assert text_of("unprocessed_message", items.unprocessed_message("m2", content="hello")) == "hello"


@pytest.mark.parametrize("kind", ["episode", "profile", "agent_case", "agent_skill", "unprocessed_message"])
@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"profile_data": ["odd"], "content": 7, "episode": 7, "name": []},
        {"profile_data": {"explicit_info": {"a": 1}, "implicit_traits": [None, {}]}, "content": [None, "odd", {}]},
    ],
)
def test_odd_items_never_fail(kind: MemoryType, raw: dict[str, Any]) -> None:
    assert isinstance(text_of(kind, raw), str)
