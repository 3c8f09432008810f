"""What was read of the spaces last used, kept in memory within a limit."""

import threading
from collections import OrderedDict
from typing import Generic, Protocol, TypeVar

_A_SPACE_MORE = 2_000  # bytes of objects around the arrays


class Sized(Protocol):
    """Something that knows its bytes."""

    @property
    def size(self) -> int: ...


T = TypeVar("T", bound=Sized)


class LastUsed(Generic[T]):
    """By number of the space. Several threads may use it at once."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._held: OrderedDict[int, T] = OrderedDict()
        self._forgotten = 0
        self._lock = threading.Lock()

    def get(self, space_no: int) -> tuple[T | None, int]:
        """What is held, and the era to give back with what is read instead."""
        with self._lock:
            if space_no in self._held:
                self._held.move_to_end(space_no)
            return self._held.get(space_no), self._forgotten

    def keep(self, space_no: int, value: T, era: int) -> None:
        """Unless something was forgotten since, which may be in it, or it alone is too much."""
        with self._lock:
            self._drop(space_no)
            if era != self._forgotten or _bytes(value) > self._most_bytes:
                return
            self._held[space_no] = value
            self._bytes += _bytes(value)
            while self._bytes > self._most_bytes:
                self._drop(next(iter(self._held)))

    def forget(self, space_nos: list[int]) -> None:
        """These were erased."""
        with self._lock:
            self._forgotten += 1
            for space_no in space_nos:
                self._drop(space_no)

    def _drop(self, space_no: int) -> None:
        value = self._held.pop(space_no, None)
        if value is not None:
            self._bytes -= _bytes(value)


def _bytes(value: Sized) -> int:
    return value.size + _A_SPACE_MORE
