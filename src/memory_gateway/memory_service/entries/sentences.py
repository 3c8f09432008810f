"""Texts as sentences: what a merge must not lose, and how a sentence is known again."""

import hashlib
import re
from collections.abc import Iterator

import regex

from memory_gateway.kit.text import collapse, fold

SUMMARY_CHARACTERS = 100

# Latin stops need white space behind them, Han stops do not; a closing quote or bracket stays with its sentence.
_LATIN_END = r"""(?:(?<=[.!?;])|(?<=[.!?;]["'”’)\]»]))\s+"""
_HAN_END = r"""(?:(?<=[。｡！？；…])|(?<=[。｡！？；…][”’」』）)\]»]))(?![。｡！？；…”’」』）)\]»])"""
_SENTENCE_END = re.compile(f"{_LATIN_END}|{_HAN_END}")
_GRAPHEME = regex.compile(r"\X")
_STANDS_ALONE = re.compile("[ -~\u4e00-\u9fff]")  # no part of a longer visible character, before or after


def split_sentences(text: str) -> list[str]:
    """Sentences and lines in order, trimmed, none empty. All characters but white space are in them."""
    return list(_sentences(text))


def _sentences(text: str) -> Iterator[str]:
    parts = (part.strip() for line in text.splitlines() for part in _SENTENCE_END.split(line))
    return (part for part in parts if part)


def sentence_key(sentence: str) -> str:
    """Equal for sentences that say the same: case, width and spacing do not count, every symbol does."""
    return collapse(fold(sentence))


def sentence_keys(text: str) -> list[str]:
    """The keys of the text's sentences, each once, in order."""
    return list(dict.fromkeys(map(sentence_key, split_sentences(text))))


def key_hash(key: str) -> int:
    """64 bits with a sign, as databases store them."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "little", signed=True)


def first_sentence(text: str) -> str:
    """The first sentence, at most 100 characters of it, no visible character cut in two."""
    sentence = next(_sentences(text), "")
    if len(sentence) <= SUMMARY_CHARACTERS:
        return sentence
    if _STANDS_ALONE.match(sentence, SUMMARY_CHARACTERS - 1) and _STANDS_ALONE.match(sentence, SUMMARY_CHARACTERS):
        return sentence[:SUMMARY_CHARACTERS].rstrip()
    end = 0
    for grapheme in _GRAPHEME.finditer(sentence):
        if grapheme.end() > SUMMARY_CHARACTERS:
            break
        end = grapheme.end()
    return sentence[: end or SUMMARY_CHARACTERS].rstrip()
