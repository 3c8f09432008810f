"""Tries that a passing fault ended: when the next one is due, and when it is enough."""

import time
from collections.abc import Iterable

from memory_gateway.kit.errors import StorageUnavailable, UpstreamRefused, UpstreamTimeout, UpstreamUnreachable

FIRST_PAUSE_SECONDS = 30.0
_LONGEST_PAUSE_SECONDS = 3600.0
_MOST_TRIES = 20  # about thirteen hours
_PASSING_STATUSES = frozenset({429, 502, 503, 504})
_MISSING_PARSER = "CAPABILITY_UNAVAILABLE"  # EverOS answers 503 where a library is not installed


def passes(error: Exception) -> bool:
    """Whether the fault lies with the upstream or the database of this moment, and not with the file."""
    if isinstance(error, UpstreamRefused):
        return error.status in _PASSING_STATUSES and error.upstream_code != _MISSING_PARSER
    return isinstance(error, StorageUnavailable | UpstreamTimeout | UpstreamUnreachable)


class Tries:
    """Counted by resource id in memory: after a restart everything is tried at once."""

    def __init__(self) -> None:
        self._tries: dict[str, tuple[int, float]] = {}

    def __len__(self) -> int:
        return len(self._tries)

    def waits(self, resource_id: str) -> bool:
        """Whether its next try is not due yet."""
        return resource_id in self._tries and time.monotonic() < self._tries[resource_id][1]

    def again(self, resource_id: str) -> bool:
        """Count a try in vain. False where it was the last, else the next is due after a pause that doubles."""
        tries = self._tries.get(resource_id, (0, 0.0))[0] + 1
        pause = min(FIRST_PAUSE_SECONDS * 2 ** (tries - 1), _LONGEST_PAUSE_SECONDS)
        self._tries[resource_id] = (tries, time.monotonic() + pause)
        return tries < _MOST_TRIES

    def forget(self, resource_id: str) -> None:
        """It is done, or somebody asks for it: nothing to wait for."""
        self._tries.pop(resource_id, None)

    def keep(self, resource_ids: Iterable[str]) -> None:
        """Forget all but these: the others were deleted, or finished by another process."""
        self._tries = {one: self._tries[one] for one in resource_ids if one in self._tries}
