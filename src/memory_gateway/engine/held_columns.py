"""The columns of the spaces last searched, kept in memory between searches.

Turns are only ever appended to a space, so what was read of it when it had so many turns is right whenever it has.
"""

from memory_gateway.engine import store
from memory_gateway.engine.columns import Columns, columns_of, load_records
from memory_gateway.engine.last_used import LastUsed
from memory_gateway.storage.port import Transaction

MOST_BYTES = 64 << 20


class HeldColumns:
    """Several threads may ask at once; each brings the transaction it reads in."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._spaces = LastUsed[Columns](most_bytes)

    async def of(self, transaction: Transaction, space_no: int) -> Columns:
        """The space as the transaction sees it."""
        held, era = self._spaces.get(space_no)
        row = await transaction.fetch_one(store.SPACE_COUNTS, {"space_no": space_no})
        if held is None or row is None or len(held) != row[2]:
            blocks = await transaction.fetch(store.RECORDS, {"space_no": space_no})
            held = columns_of(load_records(block for (block,) in blocks))
            self._spaces.keep(space_no, held, era)
        return held

    def forget(self, space_nos: list[int]) -> None:
        """These were erased."""
        self._spaces.forget(space_nos)
