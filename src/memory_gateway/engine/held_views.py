"""What searches of an unchanged space would all work out: which turns may be seen, what a term says of them."""

from functools import partial

import numpy as np

from memory_gateway.engine.held_columns import HeldColumns
from memory_gateway.engine.last_used import LastUsed
from memory_gateway.engine.recall import Concealed, SpaceView, view_of
from memory_gateway.storage.port import Transaction

MOST_BYTES = 64 << 20


class HeldViews:
    """By what is kept and what is concealed of the spaces last searched; good for as long as the columns are the same.

    Several threads may ask at once; each brings the transaction it reads in.
    """

    def __init__(self, columns: HeldColumns, most_bytes: int = MOST_BYTES) -> None:
        self._columns = columns
        self._views = LastUsed[SpaceView](most_bytes)

    async def of(
        self, transaction: Transaction, space_no: int, kept: list[int] | None, concealed: Concealed
    ) -> SpaceView:
        """The space as the transaction sees it. ``kept``: the segments that may be seen, None for all."""
        segments = None if kept is None else np.array(kept, dtype=np.int64)
        part = (concealed, None if segments is None else segments.tobytes())
        held, era = self._views.get(space_no, part)
        columns = await self._columns.of(transaction, space_no)
        if held is None or held.columns is not columns:
            held = view_of(space_no, columns, segments, concealed)
            held.on_growth = partial(self._views.recount, space_no, part)
            self._views.keep(space_no, held, era, part)
        return held

    def forget(self, space_nos: list[int]) -> None:
        """These were erased."""
        self._views.forget(space_nos)
