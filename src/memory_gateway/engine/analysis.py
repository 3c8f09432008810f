"""Text to search terms: words for scripts that space them, characters and bigrams for scripts that do not."""

import re
import threading
from functools import lru_cache

import Stemmer

from memory_gateway.kit.text import fold, normalised

# Scripts written without spaces: Han, Kana, Hangul, and Thai, Lao, Khmer and Myanmar with their marks.
UNSPACED = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\U00020000-\U000323af"
)
_SYMBOL = "\u2600-\u27bf\U0001f300-\U0001faff"
_PART = re.compile(
    rf"(?P<unspaced>[{UNSPACED}]+)|(?P<symbol>[{_SYMBOL}])|(?P<word>[^\W_{UNSPACED}]+(?:'[^\W_{UNSPACED}]+)*)"
)
_ASCII_WORD = re.compile("[a-z0-9]+(?:'[a-z0-9]+)*")  # all that `_PART` finds in folded ASCII
_LATIN_ACCENT = re.compile("[\u0300-\u036f]")
_STEMMABLE = re.compile("[a-z]{3,}")
_LONGEST_TERM = 64

STOP_WORDS = frozenset(
    """
    a about above after again all also am an and any are as at be because been before being below between both but by
    can could did do does doing down during each few for from further had has have having he her here hers herself him
    himself his how i if in into is it its itself just me more most my myself no nor not now of off on once only or
    other our ours ourselves out over own same she should so some such than that the their theirs them themselves then
    there these they this those through to too under until up very was we were what when where which while who whom why
    will with would you your yours yourself yourselves im ive id youre youve hes shes theyre weve dont didnt doesnt
    isnt arent wasnt werent cant couldnt wont wouldnt shouldnt hasnt havent hadnt thats whats lets
    """.split()
)
_STOP_CHARACTERS = frozenset("的了吗呢吧啊是在我你他她它们这那和与就也都很不有个之其")


class _English(threading.local):
    """A stemmer works on one word at a time, so each thread has its own."""

    def __init__(self) -> None:
        self.stemmer = Stemmer.Stemmer("english")


_english = _English()


def _stem(word: str) -> str:
    return str(_english.stemmer.stemWord(word)) if _STEMMABLE.fullmatch(word) else word


def _words(text: str) -> str:
    """Folded, Latin accents dropped, typographic apostrophes made plain."""
    folded = fold(text).replace("\u2019", "'")
    if folded.isascii():
        return folded
    return normalised(_LATIN_ACCENT.sub("", normalised(folded, "NFD")), "NFC")


@lru_cache(maxsize=65_536)
def _word_term(word: str) -> str:
    bare = word.removesuffix("'s").replace("'", "")
    return _stem(bare)[:_LONGEST_TERM]


def index_terms(text: str) -> list[str]:
    """Every term under which a text is found, repeats kept. A run of Han gives its characters and its bigrams."""
    words = _words(text)
    if words.isascii():
        return list(map(_word_term, _ASCII_WORD.findall(words)))
    found: list[str] = []
    for match in _PART.finditer(words):
        run = match[0]
        if match.lastgroup == "unspaced":
            found.extend(run)
            found.extend(run[at : at + 2] for at in range(len(run) - 1))
        else:
            found.append(_word_term(run) if match.lastgroup == "word" else run)
    return found


def terms(text: str) -> list[str]:
    """The terms a query looks for, repeats kept: bigrams of a Han run, its character where it is only one."""
    words = _words(text)
    if words.isascii():
        return list(map(_word_term, _ASCII_WORD.findall(words)))
    found: list[str] = []
    for match in _PART.finditer(words):
        run = match[0]
        if match.lastgroup == "unspaced" and len(run) > 1:
            found.extend(run[at : at + 2] for at in range(len(run) - 1))
        else:
            found.append(_word_term(run) if match.lastgroup == "word" else run)
    return found


_STOP_TERMS = frozenset(_word_term(word) for word in STOP_WORDS) | _STOP_CHARACTERS


def content_terms(text: str) -> list[str]:
    """`terms` without stop words; all of them where nothing else is left."""
    every = terms(text)
    telling = [term for term in every if term not in _STOP_TERMS]
    return telling or every
