"""Conversations that nobody wrote: bilingual messages over a Zipf-distributed vocabulary, the same on every machine."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from memory_gateway.engine.schemas import Message

SESSION_MESSAGES = 100
_CHINESE_SHARE = 0.4
_START_MS = 1_760_000_000_000
_ONSETS = (
    "b",
    "br",
    "c",
    "ch",
    "d",
    "dr",
    "f",
    "g",
    "gr",
    "h",
    "j",
    "k",
    "l",
    "m",
    "n",
    "p",
    "pl",
    "r",
    "s",
    "st",
    "t",
    "v",
)
_VOWELS = ("a", "e", "i", "o", "u", "ea", "ou")
_ENDS = ("", "n", "r", "s", "t", "l", "nd", "m")


class Corpus:
    """``words`` come in the order of their frequency, English and Chinese ones mixed; ``seed`` chooses the texts."""

    def __init__(self, words: list[str], seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self.words = words
        weights = 1.0 / np.arange(1, len(words) + 1)
        self._cumulative: NDArray[np.float64] = np.cumsum(weights / weights.sum())

    def sessions(self, user_id: str, messages: int) -> Iterator[tuple[str, tuple[Message, ...]]]:
        """Session ids with their messages, 100 in each."""
        for number in range(0, messages, SESSION_MESSAGES):
            count = min(SESSION_MESSAGES, messages - number)
            start = _START_MS + number * 3_600_000
            yield (
                f"chat:{number // SESSION_MESSAGES}",
                tuple(self._message(user_id, start, index) for index in range(count)),
            )

    def query(self, words: int = 3) -> str:
        """Some words that are neither very common nor very rare."""
        chosen = self._random.integers(20, 500, words)
        return " ".join(self.words[index] for index in chosen)

    def _message(self, user_id: str, start: int, index: int) -> Message:
        moment = start + index * 45_000
        if index % 2:
            return Message("assistant", "assistant", moment, self._text())
        return Message(user_id, "user", moment, self._text())

    def _text(self) -> str:
        ranks = np.searchsorted(self._cumulative, self._random.random(int(self._random.integers(8, 30))))
        return " ".join(self.words[rank] for rank in ranks) + "."


def vocabulary(size: int = 30_000, seed: int = 20_260_101) -> list[str]:
    """Words that all corpora share."""
    random = np.random.default_rng(seed)
    made: dict[str, None] = {}
    while len(made) < size:
        made[_chinese(random) if random.random() < _CHINESE_SHARE else _english(random)] = None
    return list(made)


def _english(random: np.random.Generator) -> str:
    syllables = int(random.integers(1, 4))
    return "".join(_pick(random, part) for _ in range(syllables) for part in (_ONSETS, _VOWELS, _ENDS))


def _chinese(random: np.random.Generator) -> str:
    return "".join(chr(int(code)) for code in random.integers(0x4E00, 0x4E00 + 2_500, random.integers(1, 4)))


def _pick(random: np.random.Generator, choices: tuple[str, ...]) -> str:
    return choices[int(random.integers(len(choices)))]
