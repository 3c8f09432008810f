"""How alike two texts are: the Jaccard coefficient of their sets of character bigrams."""

import unicodedata
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from memory_gateway.kit.text import fold

THRESHOLD = Fraction(3, 4)
"""From here on, this included, two texts say the same."""

Bigrams = NDArray[np.uint64]
"""A set: numbers in order, each once."""

_CODE_POINT_BITS = np.uint64(21)


class _LettersMarksDigits(dict[int, int | None]):
    """For `str.translate`: keeps letters, marks and digits of any script, drops everything else."""

    def __missing__(self, code_point: int) -> int | None:
        kept = code_point if unicodedata.category(chr(code_point))[0] in "LMN" else None
        self[code_point] = kept
        return kept


_KEPT = _LettersMarksDigits()


def bigrams(text: str) -> Bigrams:
    """The pairs of neighbouring characters of the normalised text; of a single character, that character."""
    normal = fold(text).translate(_KEPT)
    points = np.frombuffer(normal.encode("utf-32-le"), dtype="<u4").astype(np.uint64)
    return points if len(points) < 2 else np.unique(points[:-1] << _CODE_POINT_BITS | points[1:])


def similarity(one: Bigrams, other: Bigrams) -> Fraction:
    """|A∩B| / |A∪B| of two sets that are not both empty: texts without bigrams are compared as they are written."""
    shared = len(np.intersect1d(one, other, assume_unique=True))
    return Fraction(shared, len(one) + len(other) - shared)
