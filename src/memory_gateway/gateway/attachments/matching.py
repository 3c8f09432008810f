"""Which attachments a memory speaks of: those whose whole file name stands in its text."""

from collections.abc import Iterable
from typing import Any

from memory_gateway.gateway.attachments.schemas import Attachment, AttachmentView
from memory_gateway.kit.text import fold_name, one_line

# No text that reaches us holds a NUL, so no name can match across two strings
_BETWEEN = "\0"


def matching(raw: dict[str, Any], attachments: Iterable[Attachment]) -> list[AttachmentView]:
    """The attachments whose name is a substring of a string in ``raw``, in their order, each URI once.

    Names compare as NFC and case-folded, as they are or as one line, which is how the engine shows them. Nothing under
    a key ``base64`` is looked at: it may be megabytes of code.
    """
    candidates = list(attachments)
    if not candidates:
        return []
    text = fold_name(_BETWEEN.join(_strings(raw)))
    endings: dict[str, bool] = {}
    found: dict[str, AttachmentView] = {}
    for attachment in candidates:
        name = attachment.folded_name
        if (ending := name[-4:]) not in endings:
            endings[ending] = ending in text  # most texts name no file: one look settles all of a kind
        is_named = endings[ending] and (name in text or one_line(name) in text)
        if is_named and attachment.internal_uri not in found:
            found[attachment.internal_uri] = AttachmentView(
                attachment.content_type, attachment.name, attachment.internal_uri
            )
    return list(found.values())


def _strings(raw: dict[str, Any]) -> list[str]:
    """Every string value, at any depth; a stack, because an upstream's nesting is not ours to bound."""
    strings: list[str] = []
    waiting: list[Any] = [raw]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            strings.append(value)
        elif isinstance(value, dict):
            waiting.extend(inner for key, inner in value.items() if key != "base64")
        elif isinstance(value, list):
            waiting.extend(value)
    return strings
