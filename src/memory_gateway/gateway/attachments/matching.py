"""Which attachments a memory speaks of: those whose whole file name stands in its text."""

from collections.abc import Iterable
from typing import Any

from memory_gateway.gateway.attachments.schemas import Attachment, AttachmentView
from memory_gateway.kit.text import fold_name, one_line

# No text that reaches us holds a NUL, so no name can match across two strings
_BETWEEN = "\0"
_ENDING = 4
_FEW = 32


class FileNames:
    """The names of a session's attachments, made ready to be looked for in many texts.

    Most texts name no file, and a session's files mostly end alike. So a text is gone through once for each ending,
    and what stands before it is looked up.
    """

    def __init__(self, attachments: Iterable[Attachment]) -> None:
        self._attachments = list(attachments)
        self._kinds: dict[str, _Kind] = {}
        for place, attachment in enumerate(self._attachments):
            name = attachment.folded_name
            for spelling in {name, one_line(name)} - {""}:
                ending = spelling[-_ENDING:]
                kind = self._kinds.get(ending) or self._kinds.setdefault(ending, _Kind(ending))
                kind.add(spelling, place)

    def named_in(self, raw: dict[str, Any]) -> list[AttachmentView]:
        """The attachments whose name is a substring of a string in ``raw``, in their order, each URI once.

        Names compare as NFC and case-folded, as they are or as one line, which is how the engine shows them. Nothing
        under a key ``base64`` is looked at: it may be megabytes of code.
        """
        if not self._attachments:
            return []
        text = fold_name(_BETWEEN.join(_strings(raw)))
        named: set[int] = set()
        for kind in self._kinds.values():
            kind.look(text, named)
        found: dict[str, AttachmentView] = {}
        for place in sorted(named):
            one = self._attachments[place]
            found.setdefault(one.internal_uri, AttachmentView(one.content_type, one.name, one.internal_uri))
        return list(found.values())


class _Kind:
    """The names that end alike, each with the places of its attachments."""

    def __init__(self, ending: str) -> None:
        self._ending = ending
        self._places: dict[str, list[int]] = {}
        self._lengths: set[int] = set()

    def add(self, spelling: str, place: int) -> None:
        self._places.setdefault(spelling, []).append(place)
        self._lengths.add(len(spelling))

    def look(self, text: str, named: set[int]) -> None:
        """Add the places of the names that stand in the text to ``named``."""
        start = text.find(self._ending)
        if start < 0:
            return
        if text.count(self._ending) > _FEW:  # an ending that says little: a look for each name is bounded
            named.update(place for name, places in self._places.items() if name in text for place in places)
            return
        while start >= 0:
            end = start + len(self._ending)
            for length in self._lengths:
                named.update(self._places.get(text[max(0, end - length) : end], ()))
            start = text.find(self._ending, start + 1)


def _strings(raw: dict[str, Any]) -> list[str]:
    """Every string value, at any depth; a stack, because an upstream's nesting is not ours to bound."""
    strings: list[str] = []
    waiting: list[Any] = [raw]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            value = [inner for key, inner in value.items() if key != "base64"]
        for inner in value:
            if isinstance(inner, str):
                strings.append(inner)
            elif isinstance(inner, dict | list):
                waiting.append(inner)
    return strings
