"""The one place that says when two texts are the same."""

import re
import unicodedata

_WHITE_SPACE = re.compile(r"\s+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def fold(text: str) -> str:
    """NFKC and case-folded: full-width and half-width, upper and lower case compare equal."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def fold_name(name: str) -> str:
    """NFC and case-folded: how file names are compared (NFKC would make distinct names equal)."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def collapse(text: str) -> str:
    """White space runs become one space, outer white space goes."""
    return _WHITE_SPACE.sub(" ", text).strip()


def one_line(name: str) -> str:
    """A name as it is shown: line breaks and other control characters become a space."""
    return _CONTROLS.sub(" ", name).strip()


def has_nul_or_surrogate(text: str) -> bool:
    """True for text that a database or an encoder would cut or refuse."""
    return "\0" in text or _SURROGATE.search(text) is not None
