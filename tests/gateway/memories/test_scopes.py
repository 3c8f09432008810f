"""What goes to the upstream for one search, without any I/O."""

from typing import Any

import msgspec
import pytest

from memory_gateway.gateway.memories.schemas import SearchMemories
from memory_gateway.gateway.memories.scopes import Plan, plans, question
from memory_gateway.kit.errors import InvalidInput
from tests.fakes.upstream import sent

RESOURCES = ["resource:ann:r1", "resource:ann:r2", "resource:ann:r3"]
DEFAULTS = {
    "query": "tea",
    "user_id": "ann",
    "method": "hybrid",
    "top_k": 8,
    "include_profile": True,
    "enable_llm_rerank": True,
    "app_id": "default",
    "project_id": "default",
}


def planned(*, batch_size: int = 100, resources: list[str] | None = None, **body: Any) -> list[Plan]:
    asked = question("ann", msgspec.convert({"query": "tea", **body}, SearchMemories))
    return plans(asked, RESOURCES if resources is None else resources, batch_size)


def sent_filters(**body: Any) -> list[Any]:
    return [sent(plan.request).get("filters", "none") for plan in planned(**body)]


def test_without_new_fields_the_upstream_gets_the_defaults_and_nothing_more() -> None:
    assert [sent(plan.request) for plan in planned()] == [DEFAULTS]


def test_null_is_the_same_as_leaving_a_field_out() -> None:
    nulls: dict[str, Any] = dict.fromkeys(set(SearchMemories.__struct_fields__) - {"query"})
    assert [sent(plan.request) for plan in planned(**nulls)] == [DEFAULTS]


def test_every_option_goes_through_as_given() -> None:
    options: dict[str, Any] = {
        "method": "agentic",
        "top_k": -1,
        "radius": 0.25,
        "min_score": 0.5,
        "include_profile": False,
        "enable_llm_rerank": False,
        "app_id": "shop",
        "project_id": "eu",
        "filters": {"OR": [{"sender_id": "ann"}, {"timestamp": {"gte": 1}}]},
    }
    (plan,) = planned(**options)
    assert sent(plan.request) == {"query": "tea", "user_id": "ann", **options}


@pytest.mark.parametrize("method", ["keyword", "vector", "hybrid", "agentic"])
def test_every_method_goes_through(method: str) -> None:
    assert sent(planned(method=method)[0].request)["method"] == method


def test_an_agent_takes_the_place_of_the_user_as_owner() -> None:
    for plan in planned(
        agent_id="planner", scope=["current_chat", "resources", "all_user_memory"], conversation_id="1"
    ):
        body = sent(plan.request)
        assert body["agent_id"] == "planner"
        assert "user_id" not in body


@pytest.mark.parametrize(
    ("scope", "condition"),
    [
        ("current_chat", {"session_id": "chat:1"}),
        ("resources", {"session_id": {"in": RESOURCES}}),
        ("all_user_memory", None),
    ],
)
@pytest.mark.parametrize("custom", [None, {"timestamp": {"gte": 1}}, {"AND": []}, {"session_id": "chat:other"}])
def test_custom_filters_and_scope_both_hold(scope: str, condition: Any, custom: Any) -> None:
    expected: Any = {"AND": [custom, condition]}
    if condition is None:
        expected = "none" if custom is None else custom
    elif custom is None:
        expected = condition
    assert sent_filters(scope=scope, conversation_id="1", filters=custom) == [expected]


def test_an_empty_filter_is_no_filter() -> None:
    scope = ["current_chat", "resources", "all_user_memory"]
    expected = [{"session_id": "chat:1"}, {"session_id": {"in": RESOURCES}}, "none"]
    assert sent_filters(scope=scope, conversation_id="1", filters={}) == expected


def test_a_custom_filter_is_not_looked_into() -> None:
    odd = {"colour": {"like": [None, {"deep": 1.5}]}, "AND": "not a list"}
    assert sent_filters(filters=odd) == [odd]


def test_resources_go_in_batches() -> None:
    batches = [plan.request.filters for plan in planned(scope="resources", batch_size=2)]
    assert batches == [{"session_id": {"in": RESOURCES[:2]}}, {"session_id": {"in": RESOURCES[2:]}}]


def test_what_does_not_exist_is_not_asked_about() -> None:
    assert planned(scope="current_chat") == []
    assert planned(scope="resources", resources=[]) == []


def test_each_scope_is_asked_once_the_most_specific_first() -> None:
    scope = ["all_user_memory", "resources", "all_user_memory", "current_chat", "current_chat"]
    assert [plan.scope for plan in planned(scope=scope, conversation_id="1")] == [
        "current_chat",
        "resources",
        "all_user_memory",
    ]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"query": ""}, "query"),
        ({"query": " \t\n　"}, "query"),
        ({"query": "x" * 8_001}, "query"),
        ({"top_k": 0}, "top_k"),
        ({"scope": []}, "scope"),
        ({"conversation_id": ""}, "conversation_id"),
        ({"conversation_id": "1 "}, "conversation_id"),
        ({"conversation_id": "x" * 124}, "conversation_id"),
        ({"app_id": "a/b"}, "app_id"),
        ({"project_id": ".."}, "project_id"),
        ({"agent_id": ""}, "agent_id"),
        ({"agent_id": "a\nb"}, "agent_id"),
    ],
)
def test_a_faulty_field_is_named(body: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        planned(**body)
    assert caught.value.field == field


def test_the_limits_themselves_are_fine() -> None:
    assert len(planned(query="x" * 8_000)) == 1
    assert [planned(top_k=top_k)[0].request.top_k for top_k in (-1, 1, 100)] == [-1, 1, 100]
