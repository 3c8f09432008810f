"""Raw items with exactly the keys that a real EverOS returns, for planting and for scripted replies."""

from typing import Any

RawItem = dict[str, Any]
STAMP = "2026-05-28T20:26:40Z"


def episode(
    memory_id: str,
    *,
    user_id: str = "ann",
    session_id: str | None = "chat:1",
    text: str = "Ann said: hello.",
    score: float | None = 0.5,
    timestamp: str = STAMP,
    sender_ids: tuple[str, ...] | None = None,
    atomic_facts: tuple[RawItem, ...] = (),
    app_id: str = "default",
    project_id: str = "default",
) -> RawItem:
    return {
        "id": memory_id,
        "user_id": user_id,
        "app_id": app_id,
        "project_id": project_id,
        "session_id": session_id,
        "timestamp": timestamp,
        "sender_ids": list(sender_ids if sender_ids is not None else (user_id,)),
        "summary": text[:200],
        "subject": text[:60],
        "episode": text,
        "type": "Conversation",
        "score": score,
        "atomic_facts": list(atomic_facts),
    }


def atomic_fact(fact_id: str, content: str, score: float = 0.5) -> RawItem:
    return {"id": fact_id, "content": content, "score": score}


def profile(
    user_id: str = "ann",
    *,
    summary: str = "Prefers green tea.",
    explicit_info: tuple[RawItem, ...] = (),
    implicit_traits: tuple[RawItem, ...] = (),
    app_id: str = "default",
    project_id: str = "default",
) -> RawItem:
    return {
        "id": user_id,
        "user_id": user_id,
        "app_id": app_id,
        "project_id": project_id,
        "profile_data": {
            "summary": summary,
            "explicit_info": list(explicit_info),
            "implicit_traits": list(implicit_traits),
            "profile_timestamp_ms": 1_780_172_800_000,
        },
        "score": None,
    }


def agent_case(
    memory_id: str,
    *,
    agent_id: str = "assistant-main",
    session_id: str | None = "chat:1",
    task_intent: str = "Find the cause of the 502 errors.",
    approach: str = "1. read the logs\n2. check the configuration",
    score: float | None = 0.5,
    timestamp: str = STAMP,
    app_id: str = "default",
    project_id: str = "default",
) -> RawItem:
    return {
        "id": memory_id,
        "agent_id": agent_id,
        "app_id": app_id,
        "project_id": project_id,
        "session_id": session_id,
        "task_intent": task_intent,
        "approach": approach,
        "quality_score": 0.9,
        "key_insight": "Check the configuration before restarting.",
        "timestamp": timestamp,
        "score": score,
    }


def agent_skill(
    memory_id: str,
    *,
    agent_id: str = "assistant-main",
    name: str = "diagnose-502-errors",
    description: str = "When to use: an API answers 502.",
    content: str = "## Steps\n1. Read the logs",
    score: float | None = 0.5,
    app_id: str = "default",
    project_id: str = "default",
) -> RawItem:
    return {
        "id": memory_id,
        "agent_id": agent_id,
        "app_id": app_id,
        "project_id": project_id,
        "name": name,
        "description": description,
        "content": content,
        "confidence": 0.6,
        "maturity_score": 1.0,
        "source_case_ids": [],
        "score": score,
    }


def unprocessed_message(
    memory_id: str,
    *,
    session_id: str = "chat:1",
    sender_id: str = "ann",
    content: str | list[RawItem] = "hello",
    sender_name: str | None = None,
    role: str = "user",
    timestamp: str = STAMP,
    tool_calls: list[RawItem] | None = None,
    tool_call_id: str | None = None,
    app_id: str = "default",
    project_id: str = "default",
) -> RawItem:
    """No ``score`` and no owner: EverOS gives neither."""
    return {
        "id": memory_id,
        "app_id": app_id,
        "project_id": project_id,
        "session_id": session_id,
        "sender_id": sender_id,
        "sender_name": sender_name,
        "role": role,
        "content": content,
        "timestamp": timestamp,
        "tool_calls": tool_calls,
        "tool_call_id": tool_call_id,
    }
