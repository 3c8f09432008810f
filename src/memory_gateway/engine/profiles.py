"""A user's profile: what the user stated, as the Memory-Service keeps it. Nothing is inferred."""

from typing import Protocol

from msgspec import Struct

from memory_gateway.engine.items import ItemPlace
from memory_gateway.engine.schemas import RawItem


class StatedFact(Struct, frozen=True):
    """``category`` is ``personal_info`` or ``user_preference``; ``updated_ms`` is in epoch milliseconds."""

    content: str
    category: str
    source: str
    updated_ms: int


class StatedFacts(Protocol):
    """Where a user's stated facts come from, the most important first."""

    async def __call__(self, user_id: str) -> list[StatedFact]: ...


async def no_stated_facts(user_id: str) -> list[StatedFact]:  # noqa: ARG001 - the protocol's name
    """For an engine that stands alone."""
    return []


def profile_items(place: ItemPlace, facts: list[StatedFact]) -> list[RawItem]:
    """One profile in EverOS's shape, or none where nothing was stated."""
    if not facts:
        return []
    return [
        {
            "id": place.owner_id,
            "user_id": place.owner_id,
            "app_id": place.app_id,
            "project_id": place.project_id,
            "profile_data": {
                "summary": "",  # the facts say it themselves
                "explicit_info": [
                    {"category": fact.category, "description": fact.content, "evidence": fact.source} for fact in facts
                ],
                "implicit_traits": [],
                "profile_timestamp_ms": max(fact.updated_ms for fact in facts),
            },
        }
    ]
