"""Rows that are few for nearly everybody and thousands for some."""

from memory_gateway.storage.port import Database, Params, Row

INLINE_ROWS = 100
_ALL = 2**63 - 1


async def fetch_few_or_many(database: Database, sql: str, params: Params) -> list[Row]:
    """All rows of a statement that ends in ``LIMIT :most``: a few at once, many off the event loop."""
    few = await database.fetch(sql, {**params, "most": INLINE_ROWS + 1})
    if len(few) <= INLINE_ROWS:
        return few
    return await database.read(lambda transaction: transaction.fetch(sql, {**params, "most": _ALL}))
