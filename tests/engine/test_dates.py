"""Which periods the words of a query name, asked on Wednesday 15 May 2024 of messages from 2022 to 2024."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_gateway.engine.dates import Period, periods
from memory_gateway.engine.dates_chinese import CHINESE
from memory_gateway.engine.dates_english import ENGLISH

YEARS = range(2022, 2025)
DAY_MS = 86_400_000
NOW = datetime(2024, 5, 15, 18, 30, tzinfo=UTC)


def named(query: str, now: datetime = NOW, years: range = YEARS) -> list[str]:
    """Each period as its first and its last day, a single day as that day."""
    return [_written(period) for period in periods(query, int(now.timestamp() * 1000), years)]


def _written(period: Period) -> str:
    first = _day(period.start_ms)
    last = _day(period.end_ms - DAY_MS)
    assert period.is_day is (first == last)
    return first if period.is_day else f"{first}..{last}"


def _day(at_ms: int) -> str:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at_ms)
    assert moment.timestamp() % 86_400 == 0
    return moment.date().isoformat()


def check(query: str, expected: str) -> None:
    assert named(query) == expected.split(), query


ALL_MARCHES = "2024-03-01..2024-03-31 2023-03-01..2023-03-31 2022-03-01..2022-03-31"
ALL_MAYS = "2024-05-01..2024-05-31 2023-05-01..2023-05-31 2022-05-01..2022-05-31"
ALL_FIFTHS = "2024-03-05 2023-03-05 2022-03-05"
MAY_FIFTHS = "2024-05-05 2023-05-05 2022-05-05"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("What did Ann do on 5 March?", ALL_FIFTHS),
        ("what happened on the 5th of march", ALL_FIFTHS),
        ("Mar. 5", ALL_FIFTHS),
        ("March 5th, 2024", "2024-03-05"),
        ("March the 5th 2024", "2024-03-05"),
        ("on Tuesday, 5 March 2024, at noon", "2024-03-05"),
        ("by March 5, 2023", "2023-03-05"),
        ("5th March last year", "2023-03-05"),
        ("on 29 February", "2024-02-29"),
        ("2024-03-05", "2024-03-05"),
        ("at 2024-03-05T10:00:00Z", "2024-03-05"),
        ("2024/3/5", "2024-03-05"),
        ("2024.03.05", "2024-03-05"),
        ("3/5/2024", "2024-03-05"),
        ("13/5/2024", "2024-05-13"),
        ("on 25/3 we met", "2024-03-25 2023-03-25 2022-03-25"),
        ("from 5 March 2024 to 7 March 2024", "2024-03-05 2024-03-07"),
    ],
)
def test_english_names_a_day(query: str, expected: str) -> None:
    check(query, expected)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("in March 2024", "2024-03-01..2024-03-31"),
        ("early March, 2023", "2023-03-01..2023-03-31"),
        ("at the end of March 2023", "2023-03-01..2023-03-31"),
        ("Which book did she read in March?", ALL_MARCHES),
        ("What did we plan in early March?", ALL_MARCHES),
        ("mid-March", ALL_MARCHES),
        ("the March meeting", ALL_MARCHES),
        ("february's trip", "2024-02-01..2024-02-29 2023-02-01..2023-02-28 2022-02-01..2022-02-28"),
        ("March of last year", "2023-03-01..2023-03-31"),
        ("last March", "2024-03-01..2024-03-31"),
        ("last May", "2023-05-01..2023-05-31"),
        ("last june", "2023-06-01..2023-06-30"),
        ("this June", "2024-06-01..2024-06-30"),
        ("next March", "2025-03-01..2025-03-31"),
        ("in 2023", "2023-01-01..2023-12-31"),
        ("since 1999", "1999-01-01..1999-12-31"),
        ("the 2023 conference", "2023-01-01..2023-12-31"),
        ("in the summer of 2023", "2023-06-01..2023-08-31"),
        ("fall 2022", "2022-09-01..2022-11-30"),
        ("Winter of 2023", "2023-12-01..2024-02-29"),
        ("during the spring", "2024-03-01..2024-05-31 2023-03-01..2023-05-31 2022-03-01..2022-05-31"),
        ("last summer", "2023-06-01..2023-08-31"),
        ("last winter", "2023-12-01..2024-02-29"),
        ("this spring", "2024-03-01..2024-05-31"),
        ("summer last year", "2023-06-01..2023-08-31"),
        ("What is planned next autumn?", "2024-09-01..2024-11-30"),
    ],
)
def test_english_names_a_month_a_season_or_a_year(query: str, expected: str) -> None:
    check(query, expected)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("In May we met", ALL_MAYS),
        ("in may", ALL_MAYS),
        ("what happened in late may", ALL_MAYS),
        ("since May", ALL_MAYS),
        ("the picnic of may 2023", "2023-05-01..2023-05-31"),
        ("may 2023", "2023-05-01..2023-05-31"),
        ("last may", "2023-05-01..2023-05-31"),
        ("what did I do this may?", "2024-05-01..2024-05-31"),
        ("on 5 may", MAY_FIFTHS),
        ("the 5th of may", MAY_FIFTHS),
        ("5 May", MAY_FIFTHS),
        ("may 5th", MAY_FIFTHS),
        ("May 5", MAY_FIFTHS),
        ("may I ask what happened", ""),
        ("May I ask what happened", ""),
        ("what may happen", ""),
        ("WHAT MAY HAPPEN", ""),
        ("this may be hard", ""),
        ("the house they live in may be sold", ""),
        ("only 5 may attend", ""),
        ("women march for their rights", ""),
    ],
)
def test_may_is_a_month_only_where_the_words_say_so(query: str, expected: str) -> None:
    check(query, expected)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("What did I eat yesterday?", "2024-05-14"),
        ("YESTERDAY", "2024-05-14"),
        ("today's plan", "2024-05-15"),
        ("tonight", "2024-05-15"),
        ("this morning", "2024-05-15"),
        ("last night", "2024-05-14"),
        ("tomorrow", "2024-05-16"),
        ("the day before yesterday", "2024-05-13"),
        ("the day after tomorrow", "2024-05-17"),
        ("3 days ago", "2024-05-12"),
        ("three days ago", "2024-05-12"),
        ("a day ago", "2024-05-14"),
        ("a week ago", "2024-05-06..2024-05-12"),
        ("two weeks ago", "2024-04-29..2024-05-05"),
        ("twelve months ago", "2023-05-01..2023-05-31"),
        ("a year ago", "2023-01-01..2023-12-31"),
        ("half a year ago", "2023-11-01..2023-11-30"),
        ("a few days ago", "2024-05-05..2024-05-14"),
        ("last week", "2024-05-06..2024-05-12"),
        ("this week", "2024-05-13..2024-05-19"),
        ("next week", "2024-05-20..2024-05-26"),
        ("the week before last", "2024-04-29..2024-05-05"),
        ("last weekend", "2024-05-11..2024-05-12"),
        ("over the weekend", "2024-05-11..2024-05-12"),
        ("this weekend", "2024-05-18..2024-05-19"),
        ("last month", "2024-04-01..2024-04-30"),
        ("this month", "2024-05-01..2024-05-31"),
        ("next month", "2024-06-01..2024-06-30"),
        ("last year", "2023-01-01..2023-12-31"),
        ("this year", "2024-01-01..2024-12-31"),
        ("next year", "2025-01-01..2025-12-31"),
        ("last Friday", "2024-05-10"),
        ("on Friday", "2024-05-10"),
        ("on Wednesday", "2024-05-08"),
        ("the Friday before 15 July 2023", "2023-07-15"),
        ("Monday evening", "2024-05-13"),
        ("this Friday", "2024-05-17"),
        ("next Friday", "2024-05-17"),
        ("last Sat", "2024-05-11"),
        ("Friday of last week", "2024-05-10"),
        ("in the past 3 days", "2024-05-12..2024-05-15"),
        ("in the last two weeks", "2024-05-01..2024-05-15"),
        ("the past month", "2024-04-15..2024-05-15"),
        ("the last few days", "2024-05-05..2024-05-15"),
        ("the past two years", "2022-05-15..2024-05-15"),
    ],
)
def test_english_counts_from_the_day_of_asking(query: str, expected: str) -> None:
    check(query, expected)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("昨天我吃了什么", "2024-05-14"),
        ("前天", "2024-05-13"),
        ("大前天", "2024-05-12"),
        ("今天下午", "2024-05-15"),
        ("今早 今晚", "2024-05-15"),
        ("昨晚", "2024-05-14"),
        ("明天", "2024-05-16"),
        ("后天去哪里", "2024-05-17"),
        ("三天前", "2024-05-12"),
        ("3天前", "2024-05-12"),
        ("３天前", "2024-05-12"),
        ("十二天以前", "2024-05-03"),
        ("几天前", "2024-05-05..2024-05-14"),
        ("两三天前", "2024-05-05..2024-05-14"),
        ("两周前", "2024-04-29..2024-05-05"),
        ("两个星期前", "2024-04-29..2024-05-05"),
        ("一个月前", "2024-04-01..2024-04-30"),
        ("半年前", "2023-11-01..2023-11-30"),
        ("三年前", "2021-01-01..2021-12-31"),
        ("上周", "2024-05-06..2024-05-12"),
        ("上个星期天气怎么样", "2024-05-06..2024-05-12"),
        ("上上周", "2024-04-29..2024-05-05"),
        ("这周 本周", "2024-05-13..2024-05-19"),
        ("下周", "2024-05-20..2024-05-26"),
        ("上周五", "2024-05-10"),
        ("上上周五", "2024-05-03"),
        ("下周一", "2024-05-20"),
        ("周五", "2024-05-10"),
        ("星期五", "2024-05-10"),
        ("礼拜五", "2024-05-10"),
        ("上个星期天", "2024-05-12"),
        ("上周末", "2024-05-11..2024-05-12"),
        ("上个月", "2024-04-01..2024-04-30"),
        ("上个月5号", "2024-04-05"),
        ("这个月 本月", "2024-05-01..2024-05-31"),
        ("下个月", "2024-06-01..2024-06-30"),
        ("去年", "2023-01-01..2023-12-31"),
        ("前年", "2022-01-01..2022-12-31"),
        ("今年", "2024-01-01..2024-12-31"),
        ("明年", "2025-01-01..2025-12-31"),
        ("最近一周", "2024-05-08..2024-05-15"),
        ("最近三天", "2024-05-12..2024-05-15"),
        ("过去两个月", "2024-03-15..2024-05-15"),
    ],
)
def test_chinese_counts_from_the_day_of_asking(query: str, expected: str) -> None:
    check(query, expected)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("3月5日", ALL_FIFTHS),
        ("3月5号我做了什么", ALL_FIFTHS),
        ("三月五号", ALL_FIFTHS),
        ("３月５日", ALL_FIFTHS),
        ("十二月二十五日", "2024-12-25 2023-12-25 2022-12-25"),
        ("2024年3月5日星期二", "2024-03-05"),
        ("2024 年 3 月 5 日", "2024-03-05"),
        ("二〇二四年三月五日", "2024-03-05"),
        ("去年三月五日", "2023-03-05"),
        ("2024年3月", "2024-03-01..2024-03-31"),
        ("去年三月", "2023-03-01..2023-03-31"),
        ("三月份", ALL_MARCHES),
        ("2024年", "2024-01-01..2024-12-31"),
        ("去年夏天", "2023-06-01..2023-08-31"),
        ("2023年的冬天", "2023-12-01..2024-02-29"),
        ("2023年冬季", "2023-12-01..2024-02-29"),
    ],
)
def test_chinese_names_days_months_seasons_and_years(query: str, expected: str) -> None:
    check(query, expected)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "Where does Ann live?",
        "31 February",
        "on 2023-02-29",
        "0000-01-01",
        "99/99/9999",
        "3/5",
        "on 3/5",
        "rated 9/10",
        "every Friday",
        "the Friday before the party",
        "version 3.5.2024",
        "Fridays are best",
        "the sun sat low",
        "Did I fall?",
        "the hot spring",
        "10,000 years ago",
        "999 months",
        "room 2012",
        "5000 steps",
        "in the 1990s",
        "on the last day",
        "她不聪明天真",
        "目前天气如何",
        "以前年轻的时候",
        "晚上月亮很圆",
        "每周五",
        "一周一次",
        "三个月",
        "13月5日",
        "2023年2月30日",
        "十十月",
        "99999年",
    ],
)
def test_words_that_only_look_like_dates_name_nothing(query: str) -> None:
    assert named(query) == []


def test_mentions_come_in_the_order_of_the_words_and_a_repeat_counts_once() -> None:
    assert named("Yesterday, 昨天 or last Friday?") == ["2024-05-14", "2024-05-10"]


def test_no_mention_crowds_out_another() -> None:
    found = named("5 March or yesterday", years=range(2001, 2025))
    assert found == ["2024-03-05", "2024-05-14"] + [f"{year}-03-05" for year in range(2023, 2017, -1)]


def test_a_day_without_a_year_needs_messages_of_some_year() -> None:
    assert named("5 March, in May, 3月5日", years=range(0)) == []


def test_only_years_that_a_calendar_has_are_named() -> None:
    assert named("5 March", years=range(9_998, 20_000)) == []
    assert named("5 March", years=range(-3, 2)) == ["0001-03-05"]
    assert named("999 years ago, the past 999 months, 999 weeks ago", now=datetime(5, 1, 1, tzinfo=UTC)) == []
    assert named("in 9999, December 9999, 9999-12-31, tomorrow", now=datetime(9999, 12, 31, tzinfo=UTC)) == [
        "9999-12-01..9999-12-31",
        "9999-12-31",
    ]


def test_weeks_begin_on_monday_and_days_at_midnight_utc() -> None:
    sunday = datetime(2024, 5, 19, 23, 59, 59, tzinfo=UTC)
    assert named("this week, today, over the weekend, last Sunday", now=sunday) == [
        "2024-05-13..2024-05-19",
        "2024-05-19",
        "2024-05-18..2024-05-19",
        "2024-05-12",
    ]
    assert named("last month, the past month", now=datetime(2024, 3, 31, tzinfo=UTC)) == [
        "2024-02-01..2024-02-29",
        "2024-02-29..2024-03-31",
    ]


WORDS = st.sampled_from(
    "last this next on the of in May may 5 5th March 2024 0 31 999 week weekend Friday ago past few a half - / , . "
    "上 下 周 个 月 年 日 号 前 天 最近 三 十 几 半 去年 星期 １２ ﷺ \ud800 \0".split()
)


@given(st.text(max_size=200) | st.lists(WORDS, max_size=60).map("".join) | st.lists(WORDS, max_size=60).map(" ".join))
def test_any_text_is_read_into_few_true_periods(query: str) -> None:
    found = periods(query, int(NOW.timestamp() * 1000), YEARS)
    assert len(found) <= 8
    assert len(set(found)) == len(found)
    for period in found:
        assert period.start_ms < period.end_ms
        assert period.start_ms % DAY_MS == period.end_ms % DAY_MS == 0
        assert period.is_day is (period.end_ms - period.start_ms == DAY_MS)


@pytest.mark.parametrize(
    "unit",
    [
        "5 March ",
        "in the ",
        "last ",
        "1",
        "1/",
        "三",
        "上",
        "上个",
        " ",
        "May ",
        "2024-",
        "十月",
        "一天",
        "ﷺ",
        "on Fri, the 5",
    ],
)
def test_hostile_queries_name_no_more_than_eight_periods(unit: str) -> None:
    query = (unit * 8_000)[:8_000]
    assert len(periods(query, int(NOW.timestamp() * 1000), YEARS)) <= 8


_TOKENS = (
    "last this next may May march June sept. dec of in on since mid- the 5 3rd 2023 2023-05-03 3/4/2022 Monday fri Sat "
    "summer fall week weekends month years ago half a an few couple past yesterday tonight day before after tomorrow "
    "night morning weekend every , . - _ o'clock sunny marching 昨天 上周五 3月5日 去年 春天 半年前 最近三天 İ \u212a"
).split()


@given(st.lists(st.sampled_from(_TOKENS), max_size=7), st.sampled_from([" ", "", "-"]))
def test_a_text_that_is_not_worth_reading_names_no_day(tokens: list[str], between: str) -> None:
    text = between.join(tokens)
    for readings in (ENGLISH, CHINESE):
        fits = any(pattern.search(text) for pattern, _ in readings._readings)
        assert readings._worth_reading(text) or not fits
