"""From a search to the requests that go to the upstream: one for each scope, for resources one for each batch."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from memory_gateway.engine.schemas import Method, SearchRequest
from memory_gateway.gateway.memories.schemas import Scope, SearchMemories
from memory_gateway.gateway.names import app_or_project, chat_session, free_name
from memory_gateway.kit.errors import InvalidInput

SCOPES: tuple[Scope, ...] = ("current_chat", "resources", "all_user_memory")
"""The most specific first: it wins where several find the same memory."""
DEFAULT_TOP_K = 8
MAX_QUERY = 8_000


class Question(Struct, frozen=True):
    """A search that was checked, its defaults filled in. ``filters`` is the caller's own, never looked into.

    An empty one is none: joined to a scope's session it would cost the unprocessed messages.
    """

    user_id: str
    query: str
    scopes: tuple[Scope, ...]
    chat_session: str | None
    app_id: str
    project_id: str
    agent_id: str | None
    method: Method
    top_k: int
    radius: float | UnsetType
    min_score: float | UnsetType
    include_profile: bool
    enable_llm_rerank: bool
    filters: dict[str, Any] | UnsetType


class Plan(Struct, frozen=True):
    """One request to the upstream. ``sessions`` are those it looks into; None for all of the owner's."""

    scope: Scope
    request: SearchRequest
    sessions: frozenset[str] | None


def question(user_id: str, body: SearchMemories) -> Question:
    """`InvalidInput` names the field that breaks its rule."""
    _check_query(body.query)
    if body.top_k == 0:
        raise InvalidInput("must be -1 or 1 to 100", field="top_k")
    return Question(
        user_id=user_id,
        query=body.query,
        scopes=_scopes(body.scope),
        chat_session=None if body.conversation_id is None else chat_session(body.conversation_id),
        app_id=app_or_project(body.app_id, "app_id"),
        project_id=app_or_project(body.project_id, "project_id"),
        agent_id=None if body.agent_id is None else free_name(body.agent_id, "agent_id"),
        method=body.method or "hybrid",
        top_k=DEFAULT_TOP_K if body.top_k is None else body.top_k,
        radius=_given(body.radius),
        min_score=_given(body.min_score),
        include_profile=body.include_profile is not False,
        enable_llm_rerank=body.enable_llm_rerank is not False,
        filters=body.filters or UNSET,
    )


def _check_query(query: str) -> None:
    if not query.strip():
        raise InvalidInput("must not be blank", field="query")
    if len(query) > MAX_QUERY:
        raise InvalidInput(f"must have at most {MAX_QUERY:,} characters", field="query")


def _scopes(asked: Scope | list[Scope] | None) -> tuple[Scope, ...]:
    if asked is None:
        return ("all_user_memory",)
    if not asked:
        raise InvalidInput("must name at least one scope", field="scope")
    names = [asked] if isinstance(asked, str) else asked
    return tuple(scope for scope in SCOPES if scope in names)


def _given(number: float | None) -> float | UnsetType:
    return UNSET if number is None else number


def plans(asked: Question, resource_sessions: Sequence[str], batch_size: int) -> list[Plan]:
    """The most specific scope first. A chat that is not named and resources that do not exist are not asked about."""
    return [plan for scope in asked.scopes for plan in _plans_of(scope, asked, resource_sessions, batch_size)]


def _plans_of(scope: Scope, asked: Question, resource_sessions: Sequence[str], batch_size: int) -> Iterator[Plan]:
    match scope:
        case "current_chat":
            if asked.chat_session is not None:
                condition = {"session_id": asked.chat_session}
                yield Plan(scope, _request(asked, condition), frozenset({asked.chat_session}))
        case "resources":
            for start in range(0, len(resource_sessions), batch_size):
                batch = list(resource_sessions[start : start + batch_size])
                yield Plan(scope, _request(asked, {"session_id": {"in": batch}}), frozenset(batch))
        case "all_user_memory":
            yield Plan(scope, _request(asked, None), None)


def _request(asked: Question, condition: dict[str, Any] | None) -> SearchRequest:
    return SearchRequest(
        query=asked.query,
        user_id=UNSET if asked.agent_id is not None else asked.user_id,
        agent_id=UNSET if asked.agent_id is None else asked.agent_id,
        method=asked.method,
        top_k=asked.top_k,
        radius=asked.radius,
        min_score=asked.min_score,
        include_profile=asked.include_profile,
        enable_llm_rerank=asked.enable_llm_rerank,
        app_id=asked.app_id,
        project_id=asked.project_id,
        filters=_merged(asked.filters, condition),
    )


def _merged(custom: dict[str, Any] | UnsetType, condition: dict[str, Any] | None) -> dict[str, Any] | UnsetType:
    """Both conditions hold, whatever the caller's own says."""
    if condition is None:
        return custom
    return condition if custom is UNSET else {"AND": [custom, condition]}
