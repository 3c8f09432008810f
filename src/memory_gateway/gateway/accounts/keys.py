"""User keys: ``mgw_`` + 256 random bits in base62 (43 digits) + CRC-32 of all before it (6 digits).

The prefix lets secret scanners find a key that leaked; the checksum tells a mistyped key from a wrong one, offline.
"""

import hashlib
import hmac
import secrets
import zlib

PREFIX = "mgw_"
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_RANDOM_DIGITS = 43
_CHECK_DIGITS = 6
_LONGEST_PRESENTED = 256


def new_user_key() -> str:
    body = PREFIX + _base62(secrets.randbits(256), _RANDOM_DIGITS)
    return body + _checksum(body)


def key_hash(user_key: str, secret: bytes) -> str:
    """HMAC-SHA256 as hex. A text that no key can be is hashed as empty: what it costs must not depend on its size."""
    presented = user_key if len(user_key) <= _LONGEST_PRESENTED else ""
    return hmac.digest(secret, presented.encode("utf-8", "replace"), hashlib.sha256).hex()


def _checksum(body: str) -> str:
    return _base62(zlib.crc32(body.encode()), _CHECK_DIGITS)


def _base62(number: int, width: int) -> str:
    digits = []
    for _ in range(width):
        number, digit = divmod(number, 62)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))
