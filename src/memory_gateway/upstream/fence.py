"""A database on which nothing is written any more for a user whose erasure has begun."""

from memory_gateway.kit.errors import NotFound
from memory_gateway.storage.port import NO_PARAMS, Database, Params, Row, T, Transaction, Work
from memory_gateway.upstream import store


class FencedDatabase:
    """The `Database` port for the work of one user. Writes ask inside their own transaction and raise `NotFound`.

    So whatever order a write and the erasure's mark come in, the erasure finds the write's rows or the write ends.
    """

    def __init__(self, database: Database, user_id: str) -> None:
        self.kind = database.kind
        self.migrations = database.migrations
        self.reads_inline = database.reads_inline
        self._database = database
        self._user_id = user_id

    async def check(self) -> None:
        """Before work that takes long: raises `NotFound` where it would be in vain."""
        self._refuse(await self._database.fetch_one(store.FIND_ERASED, {"user_id": self._user_id}))

    async def fetch(self, sql: str, params: Params = NO_PARAMS) -> list[Row]:
        return await self._database.fetch(sql, params)

    async def fetch_one(self, sql: str, params: Params = NO_PARAMS) -> Row | None:
        return await self._database.fetch_one(sql, params)

    async def read(self, work: Work[T]) -> T:
        return await self._database.read(work)

    async def read_short(self, work: Work[T]) -> T:
        return await self._database.read_short(work)

    async def write(self, work: Work[T], *, owner: str | None = None) -> T:
        async def fenced(transaction: Transaction) -> T:
            self._refuse(await transaction.fetch_one(store.FIND_ERASED, {"user_id": self._user_id}))
            return await work(transaction)

        return await self._database.write(fenced, owner=owner or self._user_id)

    async def scrub(self) -> None:
        await self._database.scrub()

    async def close(self) -> None:
        await self._database.close()

    def _refuse(self, erased: Row | None) -> None:
        if erased is not None:
            raise NotFound
