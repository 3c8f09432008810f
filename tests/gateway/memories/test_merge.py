from memory_gateway.engine.schemas import MemoryKey, MemoryType, SearchReply
from memory_gateway.gateway.memories.found import Found
from memory_gateway.gateway.memories.merge import best, counted, found, found_in, merged
from memory_gateway.gateway.memories.schemas import Scope
from tests.fakes import items


def one(memory_id: str, score: float | None = 0.5, kind: MemoryType = "episode", scope: Scope = "resources") -> Found:
    return found(scope, MemoryKey(kind, memory_id), items.episode(memory_id, score=score))


def names(memories: list[Found]) -> list[str]:
    return [memory.key.memory_id for memory in memories]


def test_the_five_arrays_become_five_memory_types() -> None:
    reply = SearchReply(
        episodes=[items.episode("e")],
        profiles=[items.profile("ann")],
        agent_cases=[items.agent_case("c")],
        agent_skills=[items.agent_skill("s")],
        unprocessed_messages=[items.unprocessed_message("m")],
    )
    assert [(memory.key.memory_type, memory.key.memory_id) for memory in found_in("resources", reply)] == [
        ("episode", "e"),
        ("profile", "ann"),
        ("agent_case", "c"),
        ("agent_skill", "s"),
        ("unprocessed_message", "m"),
    ]


def test_a_memory_comes_once_and_the_first_scope_wins() -> None:
    chat, everything = one("a", 0.2, scope="current_chat"), one("a", 0.9, scope="all_user_memory")
    assert merged([[chat], [everything, one("b", scope="all_user_memory")]]) == [
        chat,
        one("b", scope="all_user_memory"),
    ]


def test_the_same_id_in_two_types_is_two_memories() -> None:
    assert len(merged([[one("ann", kind="profile"), one("ann", kind="episode")]])) == 2


def test_scores_fall_ties_keep_their_order_and_no_score_comes_last() -> None:
    memories = [one("none", None), one("low", 0.1), one("tie1", 0.5), one("zero", 0.0), one("tie2", 0.5), one("top", 9)]
    assert names(best(memories, -1)) == ["top", "tie1", "tie2", "low", "zero", "none"]


def test_profiles_and_unprocessed_messages_do_not_count_against_top_k() -> None:
    memories = [
        one("p", None, "profile"),
        one("m", None, "unprocessed_message"),
        one("c", 0.3, "agent_case"),
        one("a", 0.9),
        one("b", 0.5),
    ]
    assert names(best(memories, 2)) == ["a", "b", "p", "m"]
    assert counted(memories) == 3


def test_minus_one_cuts_nothing() -> None:
    assert len(best([one(str(number)) for number in range(300)], -1)) == 300
