"""What a message shows at a glance, and which queries ask for a time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_gateway.engine.cues import QUESTION, TIMED, asks_for_time, cues


@pytest.mark.parametrize(
    "text",
    [
        "How are you?",
        "How are you ?  \n",
        "Really?!",
        'She asked: "Where are you going?"',
        "(or was it the red one?)",
        "**Which one?**",
        "Did you like it? 😊🎉",
        "Did you like it? ❤️",
        "Did you like it? :)",
        "Have you seen this one? [a photo of a dog on the beach]",
        "Have you seen this one? 😊 [what is it?]",
        "你喜欢吗？",
        "你喜欢吗",
        "你喜欢吗。",
        "他在哪儿呢～",
        "你说什么",
        "“好不好？”",
    ],
)
def test_a_text_that_ends_by_asking_is_a_question(text: str) -> None:
    assert cues(text) & QUESTION


@pytest.mark.parametrize(
    "text",
    [
        "",
        "What? No, I was at home.",
        "Who knows? I do.",
        "Fine. [is it a dog?]",
        "Seen? [one] [two]",
        "See https://example.org/?q=1",
        "走吧",
        "没什么",
        "就是这么",
        "我正忙着呢",
        "吗啡是一种药",
    ],
)
def test_a_text_that_goes_on_after_its_question_is_none(text: str) -> None:
    assert not cues(text) & QUESTION


@pytest.mark.parametrize(
    "text",
    [
        "I saw her yesterday",
        "TODAY is good",
        "see you tonight",
        "tomorrow, then",
        "two days ago",
        "Last week I ran",
        "next Friday",
        "on Sundays we rest",
        "this month",
        "years of work",
        "The weekend was fun",
        "back in May",
        "it was in march",
        "last summer",
        "I have painted since 2016",
        "recently",
        "I just got back",
        "in the evening",
        "at 7 pm",
        "at 7 p.m. sharp",
        "at 19:30",
        "five o'clock",
        "on 2023-05-08",
        "昨天去了公园",
        "我前天见到她",
        "下周再说",
        "上个月",
        "周六见",
        "星期三",
        "3月5号",
        "2024 年",
        "三年前",
        "刚才",
        "最近很忙",
        "早上好像下雨",
        "下午三点钟",
        "八点见",
        "半年之前",
    ],
)
def test_a_time_expression_is_seen(text: str) -> None:
    assert cues(text) & TIMED


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I like dogs",
        "what may happen may happen",
        "a just cause",
        "just like you",
        "more than just friends",
        "Good morning! Have a nice day",
        "an ice cream sundae",
        "knights and holidaying",
        "12345 steps",
        "我喜欢狗",
        "月亮很圆",
        "门牌号码",
        "周到的服务",
    ],
)
def test_other_texts_have_no_time(text: str) -> None:
    assert not cues(text) & TIMED


def test_a_text_can_show_both() -> None:
    assert cues("Did you go there yesterday?") == QUESTION | TIMED
    assert cues("你昨天去了吗") == QUESTION | TIMED
    assert cues("I like it") == 0


@pytest.mark.parametrize(
    "query",
    [
        "When did Caroline go to the support group?",
        "when's the party",
        "Since when has she painted?",
        "Do you remember when we met?",
        "tell me when the exam is",
        "Ann moved when?",
        "When Ann moved?",
        "How long has Ann known Bob?",
        "How long ago was it?",
        "how often does she run",
        "How many weeks passed between the two trips?",
        "What time is the train?",
        "On what date did we sign",
        "what exact day was it",
        "What is the date of the wedding?",
        "Which day did she leave?",
        "which month",
        "In which year was he born?",
        "她什么时候去的公园",
        "何时出发",
        "哪天见面",
        "是哪一天",
        "几号考试",
        "几月去的",
        "哪年毕业",
        "住了多久",
        "要多长时间",
        "几点开会",
        "今天星期几",
        "周几上课",
        "什么时间",
        "什么日子",
        "去了几天？",
    ],
)
def test_a_query_asks_for_a_time(query: str) -> None:
    assert asks_for_time(query)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "Where did Ann go yesterday?",
        "What did I eat when I was in Paris?",
        "When I was in Paris, what did I eat?",
        "When Ann was ill who helped her",
        "What did she say when I told her?",
        "What a day!",
        "what happened last year",
        "How many dogs does she have?",
        "whenever you like",
        "她昨天去了哪里",
        "有多少人",
        "周末做了什么",
        "几个朋友",
    ],
)
def test_a_query_asks_for_something_else(query: str) -> None:
    assert not asks_for_time(query)


WORDS = st.sampled_from("when ? ？ [ ] ) 吗 呢 么 what day just ❓ 😊 2024 5 : pm 月 周 几 天 \ud800 \0".split())


@given(st.text(max_size=300) | st.lists(WORDS, max_size=80).map(" ".join) | st.lists(WORDS, max_size=80).map("".join))
def test_any_text_gives_only_known_bits(text: str) -> None:
    assert cues(text) in {0, QUESTION, TIMED, QUESTION | TIMED}
    assert isinstance(asks_for_time(text), bool)


@pytest.mark.parametrize(
    "unit", ["?", "?)", "?[", "❓", "吗", "when ", "what a", "how ", "just ", "1", "周", " ", "[", "\n"]
)
def test_long_texts_are_read_to_the_end(unit: str) -> None:
    text = (unit * 8_000)[:7_999] + "x"
    cues(text)
    asks_for_time(text)
