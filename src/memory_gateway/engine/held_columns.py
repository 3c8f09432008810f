"""The columns of the spaces last searched, kept in memory between searches.

Turns are only ever appended to a space, so what was read of it when it had so many turns is right whenever it has.
"""

import threading
from collections import OrderedDict

from memory_gateway.engine import store
from memory_gateway.engine.columns import Columns, columns_of, load_records
from memory_gateway.storage.port import Transaction

MOST_BYTES = 64 << 20


class HeldColumns:
    """Several threads may ask at once; each brings the transaction it reads in."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._spaces: OrderedDict[int, Columns] = OrderedDict()
        self._lock = threading.Lock()

    async def of(self, transaction: Transaction, space_no: int) -> Columns:
        """The space as the transaction sees it."""
        row = await transaction.fetch_one(store.SPACE_COUNTS, {"space_no": space_no})
        turns = 0 if row is None else int(row[2])
        with self._lock:
            held = self._spaces.get(space_no)
        if held is None or len(held) != turns:
            blocks = await transaction.fetch(store.RECORDS, {"space_no": space_no})
            held = columns_of(load_records(block for (block,) in blocks))
        self._keep(space_no, held)
        return held

    def clear(self) -> None:
        """Forget everything: somebody's memory was erased."""
        with self._lock:
            self._spaces.clear()

    def _keep(self, space_no: int, columns: Columns) -> None:
        with self._lock:
            self._spaces[space_no] = columns
            self._spaces.move_to_end(space_no)
            while sum(held.size for held in self._spaces.values()) > self._most_bytes:
                self._spaces.popitem(last=False)
