"""Ids are made by a callable that is passed in, so that tests know them beforehand.

An id by which a row is asked for without its owner says itself where the row lies: see `OwnedIds`.
"""

import re
import secrets
from hashlib import blake2b
from typing import Protocol
from uuid import UUID

from uuid_utils import uuid7

from memory_gateway.kit.clock import Clock

_OWNER_BITS = 40
_TAIL_BITS = 34
_STEP_BITS = 20
_VERSION_8 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


class IdMaker(Protocol):
    """Makes a new id, never the same twice."""

    def __call__(self) -> str: ...


def uuid7_id() -> str:
    """A UUIDv7: time-ordered, so new rows land at the end of an index."""
    return str(uuid7())


class OwnedIds:
    """Makes UUIDs of version 8: 48 bits of milliseconds, 40 of the owner's number, 34 that nobody can guess.

    Of one maker they rise, within a millisecond too. Two makers may make the same id for one owner in one millisecond:
    whoever stores it looks whether it is taken.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = (0, 0)

    def __call__(self, owner_no: int) -> str:
        if owner_no >> _OWNER_BITS:
            raise OverflowError(f"an owner's number has {_OWNER_BITS} bits, {owner_no} has more")
        now_ms, tail = self._clock(), secrets.randbits(_TAIL_BITS - 1)  # half of the room is left to rise in
        last_ms, last_tail = self._last
        if now_ms <= last_ms:
            now_ms, tail = last_ms, last_tail + 1 + secrets.randbits(_STEP_BITS)
        self._last = (now_ms + (tail >> _TAIL_BITS), tail & ((1 << _TAIL_BITS) - 1))
        return _spelled(self._last[0], owner_no << _TAIL_BITS | self._last[1])


def _spelled(epoch_ms: int, rest: int) -> str:
    """The 74 bits of the rest lie before and behind the two bits of the variant."""
    number = epoch_ms << 80 | 8 << 76 | rest >> 62 << 64 | 2 << 62 | rest & ((1 << 62) - 1)
    return str(UUID(int=number))


def owner_no_in(owned_id: str) -> int | None:
    """The number of the owner, None for an id that `OwnedIds` did not make."""
    if not _VERSION_8.fullmatch(owned_id):
        return None
    number = UUID(owned_id).int
    return ((number >> 64 & 0xFFF) << 62 | number & ((1 << 62) - 1)) >> _TAIL_BITS


def shard_key(owner: str) -> int:
    """A number for a name, of as many bits as an id has room for. Names that share one lie together, no more."""
    return int.from_bytes(blake2b(owner.encode(), digest_size=_OWNER_BITS // 8).digest(), "big")
