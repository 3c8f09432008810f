"""What was added is found, as it was written, by every method and any query."""

from pathlib import Path

import pytest

from memory_gateway.engine.schemas import Method
from memory_gateway.kit.errors import UpstreamRefused
from tests.engine.conftest import Talk, open_talk
from tests.fakes.embedder import HashEmbedder

SAID = [
    "每天看早报",
    "设备放在C盘",
    "重跑gen-itgc后再提交",
    "資料備份完成",
    "She runs every morning",
    "Meet at the Café",
    "Launch day 🎉",
]
ODD = """memory:safe|say "hi|foo AND|(py|pre-edit|it's|*|NEAR(|%|🙂|的| |' OR 1=1 --""".split("|")
METHODS: tuple[Method, ...] = ("keyword", "vector", "hybrid", "agentic")


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("早报", "每天看早报"),
        ("报", "每天看早报"),
        ("设备", "设备放在C盘"),
        ("C盘", "设备放在C盘"),
        ("itgc", "重跑gen-itgc后再提交"),
        ("備份", "資料備份完成"),
        ("ＧＥＮ", "重跑gen-itgc后再提交"),
        ("running", "She runs every morning"),
        ("cafe", "Meet at the Café"),
        ("🎉", "Launch day 🎉"),
    ],
)
async def test_short_and_glued_words_are_found_and_come_back_as_written(talk: Talk, query: str, text: str) -> None:
    for number, said in enumerate(
        [
            "每天看早报",
            "设备放在C盘",
            "重跑gen-itgc后再提交",
            "資料備份完成",
            "She runs every morning",
            "Meet at the Café",
            "Launch day 🎉",
        ]
    ):
        await talk.say(said, session=f"chat:{number}")
    assert await talk.found(query) == [f"ann: {text}"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("query", [*ODD, "x" * 5000])
async def test_any_query_is_answered(tmp_path: Path, method: Method, query: str) -> None:
    async with open_talk(tmp_path, HashEmbedder()) as talk:
        await talk.say("memory safe", "a plain line")
        reply = await talk.search(query, method=method)
        assert all(0 <= episode["score"] <= 1 for episode in reply.episodes)


async def test_a_query_of_symbols_finds_them_literally(talk: Talk) -> None:
    await talk.say("discount is 20 %", session="chat:1")
    await talk.say("discount is 20 percent", session="chat:2")
    assert await talk.found("%") == ["ann: discount is 20 %"]


@pytest.mark.parametrize("method", METHODS)
async def test_the_exact_text_of_a_turn_ranks_it_first(tmp_path: Path, method: Method) -> None:
    async with open_talk(tmp_path, HashEmbedder()) as talk:
        lines = [f"the {word} report is due and the {word} report is long" for word in ("red", "blue", "green")]
        for number, line in enumerate([*lines, "report"]):
            await talk.say(line, session=f"chat:{number}")
        for line in [*lines, "report"]:
            assert (await talk.found(line, method=method))[0] == f"ann: {line}"


async def test_vector_without_an_embedder_says_so_and_the_others_answer(talk: Talk) -> None:
    await talk.say("green tea")
    with pytest.raises(UpstreamRefused) as refusal:
        await talk.search("tea", method="vector")
    assert (refusal.value.status, refusal.value.upstream_code) == (422, "PROVIDER_NOT_CONFIGURED")
    for method in ("keyword", "hybrid", "agentic"):
        assert await talk.found("tea", method=method) == ["ann: green tea"]


async def test_a_neighbour_alone_makes_no_hit(talk: Talk) -> None:
    await talk.say("I like green tea", "and long walks")
    for number in range(16):
        await talk.say(f"something else entirely {number}")
    assert await talk.found("tea") == ["ann: I like green tea"]


async def test_top_k_counts_episodes_and_minus_one_means_all(talk: Talk) -> None:
    for number in range(5):
        await talk.say(f"tea number {number}", session=f"chat:{number}")
    assert len((await talk.search("tea", top_k=2)).episodes) == 2
    assert len((await talk.search("tea", top_k=-1)).episodes) == 5


async def test_the_same_question_is_answered_the_same_way_always(talk: Talk) -> None:
    for number in range(20):
        await talk.say("tea at four", "coffee at five", session=f"chat:{number}")
    first = await talk.search("tea coffee", top_k=-1)
    assert [await talk.search("tea coffee", top_k=-1) for _ in range(3)] == [first] * 3
    assert [e["score"] for e in first.episodes] == sorted((e["score"] for e in first.episodes), reverse=True)


async def test_facts_are_the_turns_that_answer_best_first(talk: Talk) -> None:
    await talk.say("the weather is fine", "tea", "we drink tea and tea and coffee", "good night")
    (episode,) = (await talk.search("tea")).episodes
    scores = [fact["score"] for fact in episode["atomic_facts"]]
    assert episode["score"] == scores[0]
    assert scores == sorted(scores, reverse=True)
    assert {fact["content"].split(": ", 1)[1] for fact in episode["atomic_facts"][:2]} == {
        "tea",
        "we drink tea and tea and coffee",
    }


async def test_a_filter_of_very_many_conditions_is_refused(talk: Talk) -> None:
    many = {"OR": [{"session_id": f"chat:{number}"} for number in range(1_001)]}
    with pytest.raises(UpstreamRefused, match="too many conditions"):
        await talk.search("tea", filters=many)


async def test_a_filter_of_very_many_values_is_refused_and_five_thousand_are_not(talk: Talk) -> None:
    sessions = [f"chat:{number}" for number in range(30_000)]
    assert (await talk.search("tea", filters={"session_id": {"in": sessions[:5_000]}})).episodes == []
    with pytest.raises(UpstreamRefused, match="too many conditions"):
        await talk.search("tea", filters={"session_id": {"in": sessions}})
