"""The one place that says when two texts are the same."""

import re
import unicodedata

_WHITE_SPACE = re.compile(r"\s+")
_SURROGATE = re.compile("[\ud800-\udfff]")


def fold(text: str) -> str:
    """NFKC and case-folded: full-width and half-width, upper and lower case compare equal."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def fold_name(name: str) -> str:
    """NFC and case-folded: how file names are compared (NFKC would make distinct names equal)."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def collapse(text: str) -> str:
    """White space runs become one space, outer white space goes."""
    return _WHITE_SPACE.sub(" ", text).strip()


def has_nul_or_surrogate(text: str) -> bool:
    """True for text that a database or an encoder would cut or refuse."""
    return "\0" in text or _SURROGATE.search(text) is not None
