import pytest
from msgspec import UNSET

from memory_gateway.engine.schemas import Method
from memory_gateway.gateway.memories.overrides import floor, query_words, score, share
from memory_gateway.gateway.memories.schemas import SearchMemories
from memory_gateway.gateway.memories.scopes import question


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("coffee", "I drink tea", 0.0),
        ("tea", "I drink tea", 1.0),
        ("TEAS", "I drink tea", 1.0),
        ("green tea", "I drink tea", 0.5),
        ("the tea", "the coffee", 0.0),
        ("who are you", "you know who", 2 / 3),
        ("咖啡", "我喝咖啡", 1.0),
        ("咖啡", "我喝茶", 0.0),
        ("茶", "我喝绿茶", 1.0),
        ("coff", "my coffee", 1.0),
        ("*", "five * stars", 1.0),
        ("*", "five stars", 0.0),
        ("🎉", "party 🎉", 1.0),
    ],
)
def test_the_share_of_the_query_that_a_text_holds(query: str, text: str, expected: float) -> None:
    assert share(query_words(query), text) == pytest.approx(expected)


def test_an_overrides_score_is_its_share_of_the_best_the_upstream_gave() -> None:
    assert score(1.0, 7.4) == 7.4
    assert score(0.5, 0.8) == 0.4
    assert score(0.5, None) == 0.5
    assert score(0.5, 0.0) == 0.5


def test_only_methods_that_score_by_meaning_have_a_floor() -> None:
    methods: tuple[Method, ...] = ("keyword", "vector", "hybrid", "agentic")
    found = {
        method: floor(question("ann", SearchMemories(query="x", method=method, radius=0.4, min_score=0.7)))
        for method in methods
    }
    assert found == {"keyword": 0.0, "vector": 0.4, "hybrid": 0.7, "agentic": 0.0}
    assert question("ann", SearchMemories(query="x")).radius is UNSET
