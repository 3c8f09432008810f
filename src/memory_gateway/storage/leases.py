"""Leases are rows, so that several processes never do the same background work twice."""

from memory_gateway.kit.clock import Clock
from memory_gateway.storage.port import Database, Transaction

ACQUIRE = """
INSERT INTO leases (name, holder, expires_at_ms) VALUES (:name, :holder, :expires_at_ms)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at_ms = excluded.expires_at_ms
WHERE leases.holder = excluded.holder OR leases.expires_at_ms <= :now_ms
"""
RELEASE = "DELETE FROM leases WHERE name = :name AND holder = :holder"


class Leases:
    """Named leases held by this process; a lease that is not renewed runs out and anybody may take it."""

    def __init__(self, database: Database, clock: Clock, holder: str) -> None:
        self._database = database
        self._clock = clock
        self._holder = holder

    async def acquire(self, name: str, *, seconds: float) -> bool:
        """Take or renew the lease; False while another holder has it."""

        async def work(transaction: Transaction) -> bool:
            now = self._clock()
            params = {
                "name": name,
                "holder": self._holder,
                "expires_at_ms": now + round(seconds * 1000),
                "now_ms": now,
            }
            return await transaction.execute(ACQUIRE, params) == 1

        return await self._database.write(work, owner=None)

    async def release(self, name: str) -> None:
        """Give the lease back early."""

        async def work(transaction: Transaction) -> None:
            await transaction.execute(RELEASE, {"name": name, "holder": self._holder})

        await self._database.write(work, owner=None)
