"""Two memories become one, and nothing that either said is lost."""

from collections.abc import Iterable

from msgspec.structs import replace

from memory_gateway.kit.text import fold
from memory_gateway.memory_service.entries.schemas import PROTECTED, Category, MemoryEntry
from memory_gateway.memory_service.entries.sentences import sentence_key, split_sentences

HIGHEST_IMPORTANCE = 10


def merged_content(content: str, addition: str) -> str:
    """The content, and below it each sentence of the addition that it does not hold yet."""
    held = set(map(sentence_key, split_sentences(content)))
    lines = [content]
    for sentence in split_sentences(addition):
        key = sentence_key(sentence)
        if key not in held:
            held.add(key)
            lines.append(sentence)
    return "\n".join(lines)


def united_keywords(*lists: Iterable[str]) -> list[str]:
    """In order, trimmed, none blank, none twice whatever its case."""
    kept: dict[str, str] = {}
    for keyword in (keyword.strip() for keywords in lists for keyword in keywords):
        if keyword:
            kept.setdefault(fold(keyword), keyword)
    return list(kept.values())


def merged_category(existing: Category, addition: Category) -> Category:
    """The existing one, unless only the other is protected."""
    return addition if addition in PROTECTED and existing not in PROTECTED else existing


def later_end(one: str | None, other: str | None) -> str | None:
    """What never ends wins."""
    return None if one is None or other is None else max(one, other)


def absorbed(existing: MemoryEntry, new: MemoryEntry) -> MemoryEntry:
    """The existing memory with a new one taken in; ``new.created_at`` is now."""
    return replace(
        existing,
        content=merged_content(existing.content, new.content),
        category=merged_category(existing.category, new.category),
        priority=max(existing.priority, new.priority),
        importance=max(existing.importance, new.importance),
        keywords=united_keywords(existing.keywords, new.keywords),
        source="merged",
        last_access=new.created_at,
        updated_at=new.created_at,
        expires_at=later_end(existing.expires_at, new.expires_at),
    )


def raised(importance: int) -> int:
    """The importance of an entry that takes in another by consolidation."""
    return min(HIGHEST_IMPORTANCE, importance + 1)


def consolidated(survivor: MemoryEntry, other: MemoryEntry) -> MemoryEntry:
    """The survivor with another stored memory taken in: all of it but the content and the time of the update."""
    return replace(
        survivor,
        category=merged_category(survivor.category, other.category),
        priority=max(survivor.priority, other.priority),
        importance=raised(survivor.importance),
        keywords=united_keywords(survivor.keywords, other.keywords),
        source="consolidated",
        access_count=survivor.access_count + other.access_count,
        last_access=max(survivor.last_access, other.last_access),
        expires_at=later_end(survivor.expires_at, other.expires_at),
    )
