"""How English names days, weeks, months and years."""

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
    turn_of_year,
    unit_near,
    weekday_near,
    weekend_lately,
)

_NUMBERS = {
    word: number
    for number, word in enumerate("one two three four five six seven eight nine ten eleven twelve".split(), start=1)
} | {"a": 1, "an": 1}
_NUMBER = "an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|[0-9]{1,3}"
_A_FEW = "(?:a )?(?:few|couple(?: of)?)|several"
_SHIFTS = {"last": -1, "previous": -1, "past": -1, "this": 0, "next": 1, "coming": 1}

_MONTH_NAMES = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_WEEKDAY_NAMES = "mon tue wed thu fri sat sun".split()
# "the picnic in May", not what may be, may have happened or may not.
_MAY = (
    "may(?! (?:be|have|not|also|well|never|still|even|only|seem|sound|look|need|want|get|take|come|help|cause|require"
    r"|happen|include|lead|mean|feel)\b)"
)
_MONTH = (
    rf"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|{_MAY}|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_WEEKDAY = "(?:mon(?:day)?|tue(?:s|sday)?|wed(?:nesday)?|thu(?:r|rs|rsday)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?)"
_AT = (
    r"(?:\b(?P<at>in|on|during|since|of|until|till|by|before|after|from|through|throughout|over|between|early|mid|late)"
    "[ -](?:the )?(?:(?:early|mid|late|beginning of|start of|middle of|end of)[ -])?)?"
)
_DAY_OF_MONTH = r"\b(?P<day>[0-9]{1,2})(?P<ordinal>st|nd|rd|th)?"
_YEAR = r"(?:,? (?:(?:of|in) )?(?:(?P<year>[0-9]{4})(?![0-9])|(?P<which>last|this|next) year\b))?"

_WORD = re.compile("[0-9]|[a-z]+", re.ASCII | re.IGNORECASE)
_NEEDED = frozenset(
    """
    0 1 2 3 4 5 6 7 8 9 jan january feb february mar march apr april may jun june jul july aug august sep sept september
    oct october nov november dec december mon monday tue tues tuesday wed wednesday thu thur thurs thursday fri friday
    sat saturday sun sunday spring summer autumn fall winter yesterday today tonight tomorrow morning afternoon evening
    night day days week weeks weekend weekends month months year years
    """.split()
)

ENGLISH = Readings(lambda text: not _NEEDED.isdisjoint(map(str.lower, _WORD.findall(text))))


def _count(word: str) -> int | None:
    """A number, or None for a few."""
    return int(word) if word.isdigit() else _NUMBERS.get(word.lower())


def _is_may(match: re.Match[str]) -> bool:
    """Lower-case `may` is the month only where a preposition, an ordinal or a year says so."""
    return match["month"] != "may" or bool(match["at"] or match["year"] or match.groupdict().get("ordinal"))


def _years_of(match: re.Match[str], asked: Asked) -> Asked:
    """The one year the words give, else every year of the memory."""
    if match["year"]:
        year = int(match["year"])
    elif match["which"]:
        year = asked.today.year + _SHIFTS[match["which"].lower()]
    else:
        return asked
    return asked._replace(years=range(year, year + 1))


def _number_of(match: re.Match[str]) -> int:
    return _MONTH_NAMES.index(match["month"][:3].lower()) + 1


@ENGLISH.of(rf"{_AT}(?:\b{_WEEKDAY},? )?(?:\bthe )?{_DAY_OF_MONTH} (?:of )?{_MONTH}{_YEAR}")
@ENGLISH.of(rf"{_AT}(?:\b{_WEEKDAY},? )?\b{_MONTH} (?:the )?{_DAY_OF_MONTH}(?![0-9:]){_YEAR}")
def _day_of_month(match: re.Match[str], asked: Asked) -> Spans:
    if not (_is_may(match) or " of may" in match[0]):
        return []
    month, day = _number_of(match), int(match["day"])
    return each_year(_years_of(match, asked), lambda year: day_of(year, month, day))


@ENGLISH.of(rf"{_AT}\b{_MONTH}{_YEAR}(?P<modal>(?= (?:i|we|you|he|she|it|they|the|this|that|there)\b))?")
def _month(match: re.Match[str], asked: Asked) -> Spans:
    """A bare name must be written out; bare `may` and `march` are words unless capitals say that they are names."""
    name = match["month"]
    bare = not (match["at"] or match["year"])
    doubtful = len(name) < 4 and name != "May"
    if bare and (doubtful or name == "march" or (name == "May" and match["modal"] is not None)):
        return []
    month = _number_of(match)
    return each_year(_years_of(match, asked), lambda year: months(year * 12 + month - 1))


# What this may do is no month; what we did this may is one.
@ENGLISH.of(
    r"\b(?!this (?-i:may) (?!(?:i|we|he|she|they|did|was)\b)[a-z])"
    rf"(?P<turn>last|this|next) {_MONTH}"
)
def _month_near(match: re.Match[str], asked: Asked) -> Spans:
    month = _number_of(match)
    return turn_of_year(asked, match["turn"].lower(), lambda year: months(year * 12 + month - 1))


_SEASONS = {"spring": 2, "summer": 5, "autumn": 8, "fall": 8, "winter": 11}


@ENGLISH.of(
    rf"(?:{_AT}|\b(?P<turn>last|this|next) )\b(?P<season>spring|summer|autumn|fall|winter)\b"
    r"(?:,? (?:of )?(?:(?P<year>[0-9]{4})(?![0-9])|(?P<which>last|this|next) year\b))?"
)
def _season(match: re.Match[str], asked: Asked) -> Spans:
    """Three months from March, June, September or December; a bare word (a fall, a spring) is none."""
    first = _SEASONS[match["season"].lower()]
    if match["turn"]:
        return turn_of_year(asked, match["turn"].lower(), lambda year: months(year * 12 + first, 3))
    if not (match["at"] or match["year"] or match["which"]):
        return []
    return each_year(_years_of(match, asked), lambda year: months(year * 12 + first, 3))


@ENGLISH.of(rf"{_AT}(?<![0-9/.,$€£:-])\b(?P<year>(?:19|20)[0-9]{{2}})\b(?![/:%-]|[.,][0-9])")
def _year(match: re.Match[str], asked: Asked) -> Spans:
    """A bare number is a year where the memory has that year."""
    year = int(match["year"])
    return months(year * 12, 12) if match["at"] or year in asked.years else []


@ENGLISH.of(
    r"(?<![0-9/.-])(?P<year>[0-9]{4})(?P<mark>[-/.])(?P<month>[0-9]{1,2})(?P=mark)(?P<day>[0-9]{1,2})(?![0-9/-])"
)
def _year_first(match: re.Match[str], _: Asked) -> Spans:
    return day_of(int(match["year"]), int(match["month"]), int(match["day"]))


@ENGLISH.of(
    r"(?<![0-9/.-])(?P<first>[0-9]{1,2})(?P<mark>[-/])(?P<second>[0-9]{1,2})(?P=mark)(?P<year>[0-9]{4})(?![0-9/-])"
)
def _year_last(match: re.Match[str], _: Asked) -> Spans:
    """Month first, unless only the second number can be one."""
    year, first, second = int(match["year"]), int(match["first"]), int(match["second"])
    return day_of(year, second, first) if first > 12 else day_of(year, first, second)


@ENGLISH.of(r"\b(?:on|since|until|till|by|before|after|from) (?P<first>[0-9]{1,2})/(?P<second>[0-9]{1,2})(?![0-9/])")
def _no_year(match: re.Match[str], asked: Asked) -> Spans:
    """Only where no more than one reading exists."""
    month, day = sorted((int(match["first"]), int(match["second"])))
    return each_year(asked, lambda year: day_of(year, month, day)) if day > 12 or day == month else []


_DAY_WORDS = {
    "yesterday": -1,
    "last night": -1,
    "last evening": -1,
    "the day before yesterday": -2,
    "the night before last": -2,
    "today": 0,
    "tonight": 0,
    "this morning": 0,
    "this afternoon": 0,
    "this evening": 0,
    "tomorrow": 1,
    "the day after tomorrow": 2,
}


@ENGLISH.of(rf"\b(?:{'|'.join(_DAY_WORDS)})\b")
def _day_word(match: re.Match[str], asked: Asked) -> Spans:
    return unit_near(asked, "day", _DAY_WORDS[match[0].lower()])


@ENGLISH.of(r"\b(?P<which>last|previous|this past|past|this|next|coming) (?P<unit>week|weekend|month|year)\b")
def _unit_near(match: re.Match[str], asked: Asked) -> Spans:
    unit, which = match["unit"].lower(), match["which"].lower()
    if which.endswith("past") and unit != "weekend":
        return past(asked, unit, 1)
    return unit_near(asked, unit, _SHIFTS[which.split()[-1]])


@ENGLISH.of(r"\bthe (?P<unit>week|weekend|month|year) (?P<side>before last|after next)\b")
def _unit_beyond(match: re.Match[str], asked: Asked) -> Spans:
    return unit_near(asked, match["unit"].lower(), -2 if match["side"].lower() == "before last" else 2)


@ENGLISH.of(r"\b(?:over|on|at|during|for) the weekend\b")
def _the_weekend(_: re.Match[str], asked: Asked) -> Spans:
    return weekend_lately(asked)


@ENGLISH.of(
    r"\b(?:(?:this )?(?P<which>last|this|next|past|previous|coming|on|every|each|the) )?"
    rf"(?P<day>{_WEEKDAY})\b(?:,?(?: of)? (?P<week>last|this|next) week\b)?"
)
def _weekday_named(match: re.Match[str], asked: Asked) -> Spans:
    """`every Friday` and `the Friday before the party` are no day to count from now.

    `Fri`, `Sat` and `Sun` are days only after a word that says so.
    """
    name, which = match["day"], (match["which"] or "").lower()
    short = len(name) < 6 and (not which or name in {"sat", "sun"})
    if short or which in {"every", "each", "the"}:
        return []
    weekday = _WEEKDAY_NAMES.index(name[:3].lower())
    if match["week"]:
        day = asked.monday + 7 * _SHIFTS[match["week"].lower()] + weekday
        return [Span(day, day + 1)]
    return weekday_near(asked, weekday, which)


@ENGLISH.of(rf"(?<![0-9.,])\b(?P<count>{_A_FEW}|{_NUMBER}) (?P<unit>day|week|weekend|month|year)s? ago\b")
def _units_ago(match: re.Match[str], asked: Asked) -> Spans:
    return ago(asked, match["unit"].lower(), _count(match["count"]))


@ENGLISH.of(r"\bhalf an? (?P<unit>month|year) ago\b")
def _half_ago(match: re.Match[str], asked: Asked) -> Spans:
    return ago(asked, "month", 6) if match["unit"].lower() == "year" else ago(asked, "week", 2)


@ENGLISH.of(rf"\b(?:past|last|previous) (?P<count>{_A_FEW}|{_NUMBER}) (?P<unit>day|week|month|year)s?\b")
def _past_units(match: re.Match[str], asked: Asked) -> Spans:
    return past(asked, match["unit"].lower(), _count(match["count"]))
