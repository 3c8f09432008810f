"""Base64 in requests, decoded a piece at a time: neither a second copy in memory nor a long hold of the interpreter."""

import binascii
import hashlib
from collections.abc import Iterator

_PIECE = 1 << 20  # characters; a multiple of four, so that every piece stands for whole bytes


def decoded(base64: str) -> Iterator[bytes]:
    """The bytes. Strict RFC 4648: the standard alphabet, padded, nothing else; ``ValueError`` where it is broken."""
    last = max(0, (len(base64) - 1) // _PIECE * _PIECE)
    for start in range(0, len(base64), _PIECE):
        piece = binascii.a2b_base64(base64[start : start + _PIECE], strict_mode=True)
        if start < last and len(piece) < _PIECE // 4 * 3:
            raise ValueError("padding in the middle")
        yield piece


def digest(base64: str) -> str:
    """SHA-256 of the bytes, in hexadecimal; ``ValueError`` as `decoded`, and for no bytes at all."""
    if not base64:
        raise ValueError("empty")
    sha256 = hashlib.sha256()
    for piece in decoded(base64):
        sha256.update(piece)
    return sha256.hexdigest()
