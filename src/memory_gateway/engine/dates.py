"""Which days, weeks, months or years the words of a query name, in English and in Chinese."""

import re
import unicodedata
from datetime import date
from itertools import chain, zip_longest

import msgspec

from memory_gateway.engine.dates_chinese import CHINESE
from memory_gateway.engine.dates_english import ENGLISH
from memory_gateway.engine.days import Asked, Reading, Span, exists
from memory_gateway.kit.text import collapse

_MOST_PERIODS = 8
_MOST_YEARS = 10
_LONGEST_QUERY = 8_000
_DAY_MS = 86_400_000
_EPOCH = date(1970, 1, 1).toordinal()


class Period(msgspec.Struct, frozen=True):
    """``[start_ms, end_ms)`` in epoch milliseconds, whole UTC days. ``is_day``: one day, or part of it, is named."""

    start_ms: int
    end_ms: int
    is_day: bool


def periods(query: str, now_ms: int, years: range) -> list[Period]:
    """At most 8, in the order of the words; of a day or month without a year the newest of ``years`` comes first.

    Where readings overlap, the longest wins: `last Friday` is not also `Friday`.
    """
    asked = Asked(date.fromordinal(now_ms // _DAY_MS + _EPOCH), years[-_MOST_YEARS:])
    # Not case-folded: capitals tell the month May from the verb.
    text = collapse(unicodedata.normalize("NFKC", query[:_LONGEST_QUERY]))[:_LONGEST_QUERY]
    mentions = [reading(match, asked) for match, reading in _longest(text)]
    # Each mention gives its first span before any gives its second, so that no mention crowds out another.
    spans = dict.fromkeys(span for turn in zip_longest(*mentions) for span in turn if span and exists(span))
    return [_period(span) for span in list(spans)[:_MOST_PERIODS]]


def _longest(text: str) -> list[tuple[re.Match[str], Reading]]:
    """The matches that stand, none over another, in the order of the text."""
    matches = sorted(
        chain(ENGLISH.found_in(text), CHINESE.found_in(text)), key=lambda found: found[0].start() - found[0].end()
    )
    taken = bytearray(len(text))
    standing = []
    for match, reading in matches:
        start, end = match.span()
        if not any(taken[start:end]):
            taken[start:end] = b"\1" * (end - start)
            standing.append((match, reading))
    return sorted(standing, key=lambda found: found[0].start())


def _period(span: Span) -> Period:
    return Period((span.start - _EPOCH) * _DAY_MS, (span.end - _EPOCH) * _DAY_MS, span.end - span.start == 1)
