"""How Chinese names days, weeks, months and years."""

import re

from memory_gateway.engine.days import (
    Asked,
    Readings,
    Span,
    Spans,
    ago,
    day_of,
    each_year,
    months,
    past,
    unit_near,
    weekday_near,
    weekend_lately,
)

CHINESE = Readings(lambda text: not text.isascii())

_HAN_DIGITS = {character: number for number, character in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_HAN_NUMBER = "(?<![0-9一二三四五六七八九十])(?:[0-9]{1,3}|[一二两三四五六七八九十]{1,3})"
_HAN_SHIFTS = {"上上": -2, "上": -1, "这": 0, "本": 0, "下": 1, "下下": 2}
_HAN_UNITS = {"天": "day", "日": "day", "周": "week", "星": "week", "礼": "week", "月": "month", "年": "year"}
_HAN_UNIT = "(?P<unit>天|日|周|个?星期|个?礼拜|个月|年)"
_HAN_WEEKDAYS = "一二三四五六日"
_HAN_YEARS = {"大前年": -3, "前年": -2, "去年": -1, "今年": 0, "明年": 1, "后年": 2}
_HAN_YEAR = (
    "(?P<year>大前年|(?<![目以之从])前年(?![轻级纪代龄度月])|(?<!过)去年|今年|明年|(?<![以之])后年(?![轻级纪代龄度月])"
    "|(?<![0-9])[0-9]{4} ?年|[〇零一二三四五六七八九]{4}年)"
)
_HAN_MONTH = f"(?P<month>{_HAN_NUMBER}) ?月份?"
_HAN_DAY = f"(?P<day>{_HAN_NUMBER}) ?[日号]"
_HAN_SEASONS = {"春": 2, "夏": 5, "秋": 8, "冬": 11}


def _han_number(word: str) -> int | None:
    """None for `几`, and for two digits in a row, which mean about as many (`三五天`)."""
    if word.isdigit():
        return int(word)
    tens, ten, ones = word.rpartition("十")
    if not ten:
        return _HAN_DIGITS.get(word)
    high, low = _HAN_DIGITS.get(tens or "一"), _HAN_DIGITS.get(ones or "零")
    return None if high is None or low is None else 10 * high + low


def _han_years(match: re.Match[str], asked: Asked) -> Asked:
    word = match["year"]
    if not word:
        return asked
    if word in _HAN_YEARS:
        year = asked.today.year + _HAN_YEARS[word]
    else:
        year = int("".join(str(_HAN_DIGITS.get(character, character)) for character in word.rstrip(" 年")))
    return asked._replace(years=range(year, year + 1))


def _han_unit(match: re.Match[str]) -> str:
    return _HAN_UNITS[match["unit"].removeprefix("个")[0]]


@CHINESE.of(f"(?:{_HAN_YEAR} ?的?)?{_HAN_MONTH}(?: ?的?{_HAN_DAY}(?: ?[(]?(?:周|星期|礼拜)[一二三四五六日天][)]?)?)?")
def _han_date(match: re.Match[str], asked: Asked) -> Spans:
    month, day = _han_number(match["month"]), _han_number(match["day"]) if match["day"] else None
    if month is None or not 1 <= month <= 12 or (match["day"] and day is None):
        return []
    return each_year(
        _han_years(match, asked),
        lambda year: months(year * 12 + month - 1) if day is None else day_of(year, month, day),
    )


@CHINESE.of(_HAN_YEAR)
def _han_whole_year(match: re.Match[str], asked: Asked) -> Spans:
    return each_year(_han_years(match, asked), lambda year: months(year * 12, 12))


@CHINESE.of(f"(?:{_HAN_YEAR} ?的?)?(?P<season>[春夏秋冬])[天季]")
def _han_season(match: re.Match[str], asked: Asked) -> Spans:
    first = _HAN_SEASONS[match["season"]]
    return each_year(_han_years(match, asked), lambda year: months(year * 12 + first, 3))


@CHINESE.of(f"(?P<shift>上上|(?<![晚早路])上|这|本|(?<!以)下下?)个?月(?![亮球饼光色经])(?:份? ?的?{_HAN_DAY})?")
def _han_month_near(match: re.Match[str], asked: Asked) -> Spans:
    month = asked.month + _HAN_SHIFTS[match["shift"]]
    if not match["day"]:
        return months(month)
    return day_of(month // 12, month % 12 + 1, _han_number(match["day"]) or 0)


@CHINESE.of(
    "(?P<shift>上上|(?<![晚早路])上|这|本|(?<!以)下下?)一?个?(?:周|星期|礼拜)(?P<day>(?:[一二三四五六日末]|天(?!气))(?![次个]))?(?![围边遭])"
)
def _han_week_near(match: re.Match[str], asked: Asked) -> Spans:
    shift, day = _HAN_SHIFTS[match["shift"]], match["day"]
    if day is None or day == "末":
        return unit_near(asked, "weekend" if day else "week", shift)
    start = asked.monday + 7 * shift + _HAN_WEEKDAYS.index(day.replace("天", "日"))
    return [Span(start, start + 1)]


@CHINESE.of("(?<![0-9一二两三四五六七八九十几每个])(?:周|星期|礼拜)(?P<day>[一二三四五六日天末])(?![次个程记报常气])")
def _han_weekday(match: re.Match[str], asked: Asked) -> Spans:
    """`每周五` is no day, `一周一次` neither."""
    if match["day"] == "末":
        return weekend_lately(asked)
    return weekday_near(asked, _HAN_WEEKDAYS.index(match["day"].replace("天", "日")), "last")


_HAN_DAYS = {"大前": -3, "前": -2, "昨": -1, "今": 0, "明": 1, "后": 2, "大后": 3}


@CHINESE.of("(?P<shift>昨|今|明)[天日早晚晨夜儿](?!真)")
@CHINESE.of("(?P<shift>大前|大后|(?<![目以之从提空])前|(?<![今以之然最])后)天(?![气天空性])")
def _han_day(match: re.Match[str], asked: Asked) -> Spans:
    return unit_near(asked, "day", _HAN_DAYS[match["shift"]])


@CHINESE.of(f"(?P<count>{_HAN_NUMBER}|好?几|数) ?{_HAN_UNIT}(?:以|之)?前")
def _han_ago(match: re.Match[str], asked: Asked) -> Spans:
    return ago(asked, _han_unit(match), _han_number(match["count"]))


@CHINESE.of("半(?P<unit>年|个月)(?:以|之)?前")
def _han_half_ago(match: re.Match[str], asked: Asked) -> Spans:
    return ago(asked, "month", 6) if match["unit"] == "年" else ago(asked, "week", 2)


@CHINESE.of(f"(?:最近|过去|近)的?这?(?P<count>{_HAN_NUMBER}|好?几) ?{_HAN_UNIT}(?!前)")
@CHINESE.of(f"[这前](?P<count>几|两) ?{_HAN_UNIT}(?!前)")
def _han_past(match: re.Match[str], asked: Asked) -> Spans:
    return past(asked, _han_unit(match), _han_number(match["count"]))
