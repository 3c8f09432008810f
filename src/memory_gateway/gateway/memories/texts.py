"""The readable text of a raw item, for each type of memory. Nothing here fails on a field that is missing or odd."""

from collections.abc import Iterator
from typing import Any

from memory_gateway.engine.schemas import MemoryType, RawItem


def text_of(memory_type: MemoryType, raw: RawItem) -> str:
    """What a reader should see of this memory. Never holds a base64 payload."""
    match memory_type:
        case "episode":
            return _first(raw, "episode", "summary")
        case "agent_case":
            return _lines(raw, "task_intent", "approach")
        case "agent_skill":
            return _lines(raw, "name", "description", "content")
        case "profile":
            return "\n".join(_profile_lines(raw.get("profile_data")))
        case "unprocessed_message":
            return _message_text(raw.get("content"))


def _first(raw: RawItem, *names: str) -> str:
    return next(_texts(raw, names), "")


def _lines(raw: RawItem, *names: str) -> str:
    return "\n".join(_texts(raw, names))


def _texts(raw: RawItem, names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        value = raw.get(name)
        if isinstance(value, str) and value:
            yield value


def _profile_lines(profile: Any) -> Iterator[str]:
    if not isinstance(profile, dict):
        return
    yield from _texts(profile, ("summary",))
    for name, label in (("explicit_info", "category"), ("implicit_traits", "trait")):
        entries = profile.get(name)
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict) and (line := ": ".join(_texts(entry, (label, "description")))):
                yield line


def _message_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(line for item in content if isinstance(item, dict) for line in _item_lines(item))


def _item_lines(item: RawItem) -> Iterator[str]:
    kind = item.get("type")
    if kind != "text":
        name = item.get("name")
        yield f"[{str(kind).upper()}: {name}]" if name else f"[{str(kind).upper()}]"
    yield from _texts(item, ("text", "parsed_content"))
