"""What was read of the spaces last used, kept in memory within a limit."""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar

_A_SPACE_MORE = 2_000  # bytes of objects around the arrays


class Sized(Protocol):
    """Something that knows its bytes."""

    @property
    def size(self) -> int: ...


T = TypeVar("T", bound=Sized)


class LastUsed(Generic[T]):
    """By number of the space and, where there is more than one value a space, by what sets them apart.

    Several threads may use it at once.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._held: OrderedDict[tuple[int, Hashable], tuple[T, int]] = OrderedDict()
        self._forgotten = 0
        self._lock = threading.Lock()

    def get(self, space_no: int, part: Hashable = None) -> tuple[T | None, int]:
        """What is held, and the era to give back with what is read instead."""
        key = (space_no, part)
        with self._lock:
            held = self._held.get(key)
            if held is None:
                return None, self._forgotten
            self._held.move_to_end(key)
            return held[0], self._forgotten

    def keep(self, space_no: int, value: T, era: int, part: Hashable = None) -> None:
        """Unless something was forgotten since, which may be in it, or it alone is too much."""
        key, size = (space_no, part), value.size + _A_SPACE_MORE
        with self._lock:
            self._drop(key)
            if era != self._forgotten or size > self._most_bytes:
                return
            self._put(key, value, size)

    def recount(self, space_no: int, part: Hashable = None) -> None:
        """What is held there has grown."""
        key = (space_no, part)
        with self._lock:
            if (held := self._held.get(key)) is not None and (size := held[0].size + _A_SPACE_MORE) != held[1]:
                self._drop(key)
                self._put(key, held[0], size)

    def _put(self, key: tuple[int, Hashable], value: T, size: int) -> None:
        self._held[key] = value, size
        self._bytes += size
        while self._bytes > self._most_bytes:
            self._drop(next(iter(self._held)))

    def forget(self, space_nos: list[int]) -> None:
        """These were erased."""
        erased = frozenset(space_nos)
        with self._lock:
            self._forgotten += 1
            for key in [key for key in self._held if key[0] in erased]:
                self._drop(key)

    def _drop(self, key: tuple[int, Hashable]) -> None:
        held = self._held.pop(key, None)
        if held is not None:
            self._bytes -= held[1]
