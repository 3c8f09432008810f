"""Ids are made by a callable that is passed in, so that tests know them beforehand."""

from typing import Protocol

from uuid_utils import uuid7


class IdMaker(Protocol):
    """Makes a new id, never the same twice."""

    def __call__(self) -> str: ...


def uuid7_id() -> str:
    """A UUIDv7: time-ordered, so new rows land at the end of an index."""
    return str(uuid7())
