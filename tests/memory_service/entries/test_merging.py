from typing import Any

import pytest
from msgspec.structs import replace

from memory_gateway.memory_service.entries.merging import absorbed, consolidated, merged_content, united_keywords
from memory_gateway.memory_service.entries.schemas import Category, MemoryEntry

EARLIER, NOW = "2026-05-28T20:26:40.000Z", "2026-06-01T08:00:00.000Z"


def entry(**fields: Any) -> MemoryEntry:
    stored = MemoryEntry(
        id="one",
        user_id="ann",
        content="Likes tea.",
        summary="tea",
        category="knowledge",
        priority=1,
        importance=5,
        keywords=["Tea"],
        session_id="chat:1",
        source="manual",
        access_count=4,
        last_access=EARLIER,
        created_at=EARLIER,
        updated_at=EARLIER,
    )
    return replace(stored, **fields)


@pytest.mark.parametrize(
    ("content", "addition", "expected"),
    [
        ("door code is 4471", "door code is 4477", "door code is 4471\ndoor code is 4477"),
        ("I write C", "I write C++", "I write C\nI write C++"),
        ("Tea. Milk.", "MILK.  tea. Sugar.", "Tea. Milk.\nSugar."),
        ("Tea", "Sugar. sugar. SUGAR.", "Tea\nSugar."),
        ("一。二。", "二。三。", "一。二。\n三。"),
        ("as  it\nwas ", "As it", "as  it\nwas "),
    ],
)
def test_a_merge_adds_the_sentences_that_are_not_there_yet(content: str, addition: str, expected: str) -> None:
    assert merged_content(content, addition) == expected


def test_keywords_are_trimmed_and_united_in_order_whatever_their_case() -> None:
    assert united_keywords([" Tea ", "", "tea"], ["TEA", "茶", "Ｔｅａ", "  "]) == ["Tea", "茶"]


def test_an_absorbed_memory_raises_what_is_there_and_keeps_its_name() -> None:
    new = entry(
        id="two",
        content="Likes green tea.",
        summary="green",
        priority=3,
        importance=2,
        keywords=["tea", "green"],
        session_id="chat:2",
        source="conversation",
        access_count=0,
        created_at=NOW,
    )
    assert absorbed(entry(), new) == entry(
        content="Likes tea.\nLikes green tea.",
        priority=3,
        keywords=["Tea", "green"],
        source="merged",
        last_access=NOW,
        updated_at=NOW,
    )


def test_a_consolidated_memory_counts_both_and_grows_more_important() -> None:
    other = entry(id="two", priority=0, importance=5, keywords=["green"], access_count=3, last_access=NOW)
    assert consolidated(entry(), other) == entry(
        importance=6, keywords=["Tea", "green"], access_count=7, last_access=NOW, source="consolidated"
    )
    assert consolidated(entry(importance=10), other).importance == 10


@pytest.mark.parametrize(
    ("existing", "new", "kept"),
    [
        ("knowledge", "event", "knowledge"),
        ("knowledge", "personal_info", "personal_info"),
        ("event", "user_preference", "user_preference"),
        ("personal_info", "user_preference", "personal_info"),
        ("personal_info", "event", "personal_info"),
    ],
)
def test_a_protected_category_wins_else_the_existing_one(existing: Category, new: Category, kept: Category) -> None:
    assert absorbed(entry(category=existing), entry(category=new)).category == kept
    assert consolidated(entry(category=existing), entry(category=new)).category == kept


@pytest.mark.parametrize(
    ("existing", "new", "kept"), [(None, NOW, None), (NOW, None, None), (EARLIER, NOW, NOW), (NOW, EARLIER, NOW)]
)
def test_no_end_wins_else_the_later_one(existing: str | None, new: str | None, kept: str | None) -> None:
    assert absorbed(entry(expires_at=existing), entry(expires_at=new)).expires_at == kept
    assert consolidated(entry(expires_at=existing), entry(expires_at=new)).expires_at == kept
