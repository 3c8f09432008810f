"""When a run of turns ends, and what is said of it: transcript, subject, summary. All extractive, no model."""

import re
from collections import Counter
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain

from msgspec import Struct

from memory_gateway.engine.analysis import content_terms
from memory_gateway.engine.pieces import shown, split_sentences
from memory_gateway.kit.text import one_line

SILENCE_MS = 30 * 60 * 1000
TURN_LIMIT = 16
CHAR_LIMIT = 4000
TRAJECTORY_LIMIT = 50
SUBJECT_CHARS = 80
SUMMARY_CHARS = 300
_TELLING_TERMS = 3
_SENTENCES_WEIGHED = 60
# Every character that some reader breaks a line at
_BREAKS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_NEXT_LINE = re.compile(rf"[{_BREAKS}]+(?=[^{_BREAKS}])")
_INDENT = "  "
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class OpenSegment(Struct):
    """The segment of a session that still takes turns."""

    segment_no: int
    first_ms: int
    last_ms: int
    turn_count: int
    char_count: int
    last_turn_no: int
    awaits_tools: bool


class Turn(Struct, frozen=True):
    """A stored piece of a message."""

    turn_no: int
    segment_no: int
    message_no: int
    timestamp_ms: int
    speaker: str
    role: str
    label: str | None
    text: str

    @property
    def line(self) -> str:
        """The turn as a line of a transcript and as a fact: when, who, what. Times are UTC.

        Only such a line begins at the margin: the text's own further lines are indented, so none of them can pass
        for another speaker's.
        """
        return f"[{clock_time(self.timestamp_ms)}] {one_line(self.speaker)}: {_indented(self.shown)}"

    @property
    def shown(self) -> str:
        """The label, where there is one, and the text."""
        return shown(self.label and one_line(self.label), self.text)


def _indented(text: str) -> str:
    if len(text.splitlines()) < 2:  # nearly always, and soon said
        return text
    return _NEXT_LINE.sub(rf"\g<0>{_INDENT}", text)


def clock_time(timestamp_ms: int) -> str:
    """``2026-05-28 Thu 20:26``."""
    return _minute(timestamp_ms // 60_000)


@lru_cache(maxsize=4096)
def _minute(minute: int) -> str:
    moment = datetime.fromtimestamp(minute * 60, UTC)
    return f"{moment:%Y-%m-%d} {_WEEKDAYS[moment.weekday()]} {moment:%H:%M}"


def ends_before(segment: OpenSegment, timestamp_ms: int, chars: int, *, in_trajectory: bool) -> bool:
    """Whether a turn with this time and length starts a new segment.

    A tool trajectory is not cut at the ordinary limits: a case needs its whole course.
    """
    if timestamp_ms > segment.last_ms + SILENCE_MS or timestamp_ms < segment.first_ms - SILENCE_MS:
        return True
    if in_trajectory or segment.awaits_tools:
        return segment.turn_count >= TRAJECTORY_LIMIT
    return segment.turn_count >= TURN_LIMIT or segment.char_count + chars > CHAR_LIMIT


def transcript(turns: list[Turn]) -> str:
    """The turns in order of time, one line a message, further lines of it indented.

    A file's label stands once for its run of pieces.
    """
    lines: list[str] = []
    before: Turn | None = None
    for turn in sorted(turns, key=lambda turn: (turn.timestamp_ms, turn.turn_no)):
        if before is not None and before.message_no == turn.message_no:
            lines[-1] += f"\n{_INDENT}{_indented(turn.text if turn.label == before.label else turn.shown)}"
        else:
            lines.append(turn.line)
        before = turn
    return "\n".join(lines)


def subject(turns: list[Turn]) -> str:
    """The first telling sentence, a user's where there is one."""
    ordered = sorted(turns, key=lambda turn: (turn.role != "user", turn.timestamp_ms, turn.turn_no))
    sentences = [sentence for turn in ordered for sentence in _sentences(turn.text)]
    telling = (sentence for sentence in sentences if len(set(content_terms(sentence))) >= _TELLING_TERMS)
    return shorten(next(telling, sentences[0] if sentences else _first_label(turns)), SUBJECT_CHARS)


def summary(turns: list[Turn]) -> str:
    """Up to 300 characters of the most central sentences, in the order they were said.

    Central: the mean weight of a sentence's terms, a term's weight being in how many sentences it stands.
    """
    ordered = sorted(turns, key=lambda turn: (turn.timestamp_ms, turn.turn_no))
    sentences = [s for turn in ordered for s in _sentences(turn.text)][:_SENTENCES_WEIGHED]
    if not sentences:
        return _first_label(turns)
    terms = [set(content_terms(sentence)) for sentence in sentences]
    weight = Counter(chain.from_iterable(terms))
    ranked = sorted(range(len(sentences)), key=lambda at: -_centrality(terms[at], weight))
    chosen: list[int] = []
    used = 0
    for at in ranked:
        if used + len(sentences[at]) <= SUMMARY_CHARS:
            chosen.append(at)
            used += len(sentences[at]) + 1
    if not chosen:
        return shorten(sentences[ranked[0]], SUMMARY_CHARS)
    return " ".join(sentences[at] for at in sorted(chosen))


@lru_cache(maxsize=TRAJECTORY_LIMIT)
def _sentences(text: str) -> tuple[str, ...]:
    """Of a turn: its segment's subject and summary are made one after the other."""
    return tuple(split_sentences(text))


def _centrality(terms: set[str], weight: Counter[str]) -> float:
    return sum(map(weight.__getitem__, terms)) / (len(terms) + 2)


def _first_label(turns: list[Turn]) -> str:
    return next((one_line(turn.label) for turn in turns if turn.label), "")


def shorten(text: str, limit: int) -> str:
    """Cut at the last space before the limit, where that keeps most of it; an ellipsis shows the cut."""
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    head, _, _ = cut.rpartition(" ")
    return (head if len(head) > limit // 2 else cut).rstrip() + "…"
