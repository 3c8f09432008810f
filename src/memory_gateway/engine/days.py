"""The days, weeks, months and years around a query: what readings of its words are made of. Days are UTC days."""

import re
from calendar import monthrange
from collections.abc import Callable, Iterator
from datetime import date
from itertools import chain
from typing import NamedTuple

_LAST_DAY = date.max.toordinal()


class Span(NamedTuple):
    """Days from ``start`` until before ``end``, as `date.toordinal` counts them."""

    start: int
    end: int


class Asked(NamedTuple):
    """When a query was asked, and of which years."""

    today: date
    years: range

    @property
    def day(self) -> int:
        return self.today.toordinal()

    @property
    def monday(self) -> int:
        return self.day - self.today.weekday()

    @property
    def month(self) -> int:
        """Months since the year 0."""
        return self.today.year * 12 + self.today.month - 1


Spans = list[Span]
Reading = Callable[[re.Match[str], Asked], Spans]


class Readings:
    """What the expressions of one language mean. One that gives nothing still takes its words from shorter ones.

    ``worth_reading`` is true of every text that one of them fits: most queries name no day, and that is soon seen.
    """

    def __init__(self, worth_reading: Callable[[str], bool]) -> None:
        self._worth_reading = worth_reading
        self._readings: list[tuple[re.Pattern[str], Reading]] = []

    def of(self, expression: str) -> Callable[[Reading], Reading]:
        def add(reading: Reading) -> Reading:
            self._readings.append((re.compile(expression, re.ASCII | re.IGNORECASE), reading))
            return reading

        return add

    def found_in(self, text: str) -> Iterator[tuple[re.Match[str], Reading]]:
        for pattern, reading in self._readings if self._worth_reading(text) else ():
            for match in pattern.finditer(text):
                yield match, reading


def exists(span: Span) -> bool:
    return 1 <= span.start < span.end <= _LAST_DAY + 1


def day_of(year: int, month: int, day: int) -> Spans:
    try:
        start = date(year, month, day).toordinal()
    except ValueError:  # there is no such day
        return []
    return [Span(start, start + 1)]


def months(month: int, count: int = 1) -> Spans:
    """``count`` months from ``month``, counted since the year 0."""
    first, last = divmod(month, 12), divmod(month + count - 1, 12)
    if not 1 <= first[0] <= last[0] <= 9999:
        return []
    end = date(last[0], last[1] + 1, 1).toordinal() + monthrange(last[0], last[1] + 1)[1]
    return [Span(date(first[0], first[1] + 1, 1).toordinal(), end)]


def unit_near(asked: Asked, unit: str, shift: int) -> Spans:
    """The day, week (from Monday), weekend, month or year ``shift`` of them from now."""
    if unit == "month":
        return months(asked.month + shift)
    if unit == "year":
        return months((asked.today.year + shift) * 12, 12)
    if unit == "day":
        return [Span(asked.day + shift, asked.day + shift + 1)]
    monday = asked.monday + 7 * shift
    return [Span(monday + 5 if unit == "weekend" else monday, monday + 7)]


_FEW = {"day": 10, "week": 5, "weekend": 5, "month": 5, "year": 5}


def ago(asked: Asked, unit: str, count: int | None) -> Spans:
    """The one unit so many ago; a few: any of the last few."""
    nearest = unit_near(asked, unit, -1 if count is None else -count)
    farthest = unit_near(asked, unit, -_FEW[unit]) if count is None else nearest
    return [Span(farthest[0].start, nearest[0].end)] if farthest and nearest else []


def past(asked: Asked, unit: str, count: int | None) -> Spans:
    """From so many units ago until today."""
    shift = _FEW[unit] if count is None else count
    if unit in {"day", "week"}:
        return [Span(asked.day - shift * (7 if unit == "week" else 1), asked.day + 1)]
    month = months(asked.month - shift * (12 if unit == "year" else 1))
    return [Span(min(one.start + asked.today.day, one.end) - 1, asked.day + 1) for one in month]


def each_year(asked: Asked, of_year: Callable[[int], Spans]) -> Spans:
    return list(chain.from_iterable(of_year(year) for year in reversed(asked.years)))


def turn_of_year(asked: Asked, which: str, of_year: Callable[[int], Spans]) -> Spans:
    """What recurs every year: the `last` one that is over, the `next` one to begin, or `this` year's."""
    year = asked.today.year
    near = [span for each in range(year - 2, year + 3) for span in of_year(each)]
    if which == "next":
        return [span for span in near if span.start > asked.day][:1]
    if which == "this":
        return [span for span in near if span.start <= asked.day < span.end] or of_year(year)
    return [span for span in near if span.end <= asked.day][-1:]


def weekday_near(asked: Asked, weekday: int, which: str) -> Spans:
    """The latest one before today, the first one after it, or the one of this week."""
    if which == "this":
        return unit_near(asked, "day", weekday - asked.today.weekday())
    if which in {"next", "coming"}:
        return unit_near(asked, "day", (weekday - asked.today.weekday() - 1) % 7 + 1)
    return unit_near(asked, "day", -((asked.today.weekday() - weekday - 1) % 7 + 1))


def weekend_lately(asked: Asked) -> Spans:
    """The one that is on, else the last one."""
    return unit_near(asked, "weekend", 0 if asked.today.weekday() >= 5 else -1)
