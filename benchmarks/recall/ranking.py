"""From the reply to a search to the order in which it gives what was said.

First all `atomic_facts` by score, over all episodes; then the episodes' other lines, episode by episode. A unit counts
once.
"""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from benchmarks.recall.conversations import Conversation, Message
from memory_gateway.kit.text import collapse

_LINE = re.compile(r"\[([^\]]+)\] (.*)", re.DOTALL)


class Fact(Struct, frozen=True):
    content: str
    score: float


class Item(Struct, frozen=True):
    """What the upstream tells of an episode; nothing of it is in any other memory."""

    episode: str = ""
    atomic_facts: list[Fact] = field(default_factory=list)


class Result(Struct, frozen=True):
    session_id: str | None
    text: str
    raw: Item


class Reply(Struct, frozen=True):
    results: list[Result]


class Origins:
    """Knows which message a line of a transcript is, by its session, its minute, its speaker and its words."""

    def __init__(self, conversation: Conversation) -> None:
        self._messages = {(message.session_id, message.moment): message for message in conversation.messages}
        if len(self._messages) < len(conversation.messages):
            raise AssertionError(f"{conversation.user_id}: two messages of a session share a minute")
        self._known: dict[tuple[str | None, str], int] = {}

    def unit(self, session_id: str | None, line: str) -> int:
        """The unit that a fact or a line belongs to. A line that nobody said is a fault of the server."""
        if (unit := self._known.get((session_id, line))) is None:
            unit = self._known[session_id, line] = self._message(session_id, line).unit
        return unit

    def _message(self, session_id: str | None, line: str) -> Message:
        if (match := _LINE.match(line)) and (message := self._messages.get((session_id or "", match[1]))):
            speaker, _, words = match[2].partition(": ")
            if speaker == message.sender_name and collapse(words) in collapse(message.text):
                return message
        raise AssertionError(f"nobody said this in {session_id}: {line!r}")


def ranked_units(results: Sequence[Result], origins: Origins) -> list[int]:
    """Distinct units, best first."""
    facts = [(fact, result.session_id) for result in results for fact in result.raw.atomic_facts]
    facts.sort(key=lambda found: -found[0].score)
    ordered = [(session_id, fact.content) for fact, session_id in facts]
    ordered += [(result.session_id, line) for result in results for line in _transcript_lines(result.raw.episode)]
    return list(dict.fromkeys(origins.unit(session_id, line) for session_id, line in ordered))


def _transcript_lines(transcript: str) -> Iterator[str]:
    """The first line of each message: further ones are indented."""
    return (line for line in transcript.split("\n") if line.startswith("["))
