"""The one place that says when two texts are the same."""

import re
import unicodedata
from functools import lru_cache
from typing import Literal

import regex

_SURROGATE = re.compile("[\ud800-\udfff]")
_MANY_MARKS = regex.compile(r"\p{M}{31}")
_THIRTY_MARKS = regex.compile(r"\p{M}{30}(?=\p{M})")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def normalised(text: str, form: Literal["NFC", "NFD", "NFKC"]) -> str:
    """As `unicodedata.normalize`, in linear time.

    That one sorts each run of combining marks, slowly; no language has runs of more than thirty. So longer ones are cut
    by a joiner, as the Stream-Safe Text Format has it (Unicode Standard Annex 15, section 13).
    """
    if not text.isascii() and _MANY_MARKS.search(text):
        text = _THIRTY_MARKS.sub("\\g<0>\u034f", text)
    return unicodedata.normalize(form, text)


def fold(text: str) -> str:
    """NFKC and case-folded: full-width and half-width, upper and lower case compare equal."""
    if text.isascii():
        return text.lower()
    return normalised(normalised(text, "NFKC").casefold(), "NFKC")


def fold_name(name: str) -> str:
    """NFC and case-folded: how file names are compared (NFKC would make distinct names equal)."""
    if name.isascii():
        return name.lower()
    return normalised(normalised(name, "NFC").casefold(), "NFC")


def collapse(text: str) -> str:
    """White space runs become one space, outer white space goes."""
    if text.isprintable() and "  " not in text:  # of all white space only the space is printable
        return text.strip()
    return " ".join(text.split())


@lru_cache(maxsize=4096)
def one_line(name: str) -> str:
    """A name as it is shown: line breaks and other control characters become a space."""
    return _CONTROLS.sub(" ", name).strip()


def has_nul_or_surrogate(text: str) -> bool:
    """True for text that a database or an encoder would cut or refuse."""
    return "\0" in text or _SURROGATE.search(text) is not None
