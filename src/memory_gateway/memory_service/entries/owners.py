"""A user in this room: a number that keeps the user's rows together, and counters that change with every write."""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import asdict

from memory_gateway.memory_service.entries import store
from memory_gateway.storage.port import Reads, Transaction

_ENTRY_BITS = 32
_COUNTERS = 6


class Owner(Struct):
    """The user's row, as it will be when the transaction ends.

    ``change_no`` grows with every change of an entry but an access; ``unindexed_count`` entries await the text index,
    which names entries ``indexed_count`` times in ``segment_count`` segments. Every write of signatures leaves another
    ``signature_stamp``.
    """

    user_no: int
    user_id: str
    last_entry_no: int
    change_no: int
    unindexed_count: int
    indexed_count: int
    segment_count: int
    signature_stamp: int

    @property
    def keys(self) -> dict[str, int]:
        """The range of the user's keys, for statements with ``:after`` and ``:last``."""
        return {
            "user_no": self.user_no,
            "after": entry_key(self.user_no, 0),
            "last": entry_key(self.user_no, self.last_entry_no),
        }


def entry_key(user_no: int, entry_no: int) -> int:
    """The key of an entry's row."""
    return user_no << _ENTRY_BITS | entry_no


def entry_no_of(key: int) -> int:
    """The number of the entry among its user's, from 1 in the order of making."""
    return key & ((1 << _ENTRY_BITS) - 1)


def user_no_of(key: int) -> int:
    """Whose entry it is."""
    return key >> _ENTRY_BITS


async def find_owner(reads: Reads, user_id: str) -> Owner | None:
    """None for a user who never stored anything."""
    row = await reads.fetch_one(store.FIND_USER, {"user_id": user_id})
    return None if row is None else await load_owner(reads, row[0])


async def load_owner(reads: Reads, user_no: int) -> Owner | None:
    """None for a user who has been erased."""
    row = await reads.fetch_one(store.LOAD_USER, {"user_no": user_no})
    return None if row is None else Owner(user_no, *row)


async def open_owner(transaction: Transaction, user_id: str) -> Owner:
    """The user's row, made if need be."""
    owner = await find_owner(transaction, user_id)
    if owner is not None:
        return owner
    ((user_no,),) = await transaction.fetch(store.CREATE_USER, {"user_id": user_id})
    await transaction.execute(store.NUMBER_USER, {"user_id": user_id, "user_no": user_no})
    return Owner(user_no, user_id, *[0] * _COUNTERS)


async def save_owner(transaction: Transaction, owner: Owner) -> None:
    """Write the counters down."""
    await transaction.execute(store.SAVE_USER, asdict(owner))


def chunks_of_keys(keys: list[int]) -> Iterator[dict[str, int]]:
    """Parameters for statements that take `store.KEYS_AT_ONCE` keys; the last are filled up with a key nobody has."""
    for start in range(0, len(keys), store.KEYS_AT_ONCE):
        chunk = keys[start : start + store.KEYS_AT_ONCE]
        padded = [*chunk, *[-1] * (store.KEYS_AT_ONCE - len(chunk))]
        yield {f"key_{number}": key for number, key in enumerate(padded)}
