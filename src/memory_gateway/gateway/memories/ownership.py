"""The first user to write a session owns it, per app and project.

Two users who both call their chat ``1`` would otherwise share the upstream's buffer, and its extraction would mix
their words. So a session is claimed before the first add, and for good: a process that dies may have handed words to
the upstream. Only a clear refusal drops the claim again, so nobody holds a name by adds that were refused.
"""

from collections.abc import Iterable

from msgspec import Struct

from memory_gateway.gateway.memories import store
from memory_gateway.gateway.memories.found import Session
from memory_gateway.gateway.names import RESOURCE_PREFIX
from memory_gateway.kit.clock import Clock, rfc3339
from memory_gateway.kit.errors import Forbidden
from memory_gateway.storage.lists import with_list
from memory_gateway.storage.port import Database, Transaction

_ANOTHERS = "this session belongs to another user"


class Claim(Struct, frozen=True):
    """``settled``: the session held words of its owner already when it was claimed."""

    user_id: str
    session: Session
    settled: bool


class Sessions:
    """Who owns which session."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def is_own(self, user_id: str, session: Session) -> bool | None:
        """True for the user's own, False for another user's, None for a session nobody has written."""
        own = await self.own(user_id, session.app_id, session.project_id, [session.session_id])
        return own.get(session.session_id)

    async def has_written(self, user_id: str, session: Session) -> bool:
        """Whether the session is the user's; `Forbidden` where it is another's."""
        own = await self.is_own(user_id, session)
        if own is False:
            raise Forbidden(_ANOTHERS)
        return own is True

    async def own(self, user_id: str, app_id: str, project_id: str, session_ids: Iterable[str]) -> dict[str, bool]:
        """As `is_own`, for many sessions of one app and project; those nobody has written are left out."""
        own: dict[str, bool] = {}
        written: list[str] = []
        for session_id in session_ids:
            if session_id.startswith(RESOURCE_PREFIX):
                own[session_id] = session_id.startswith(f"{RESOURCE_PREFIX}{user_id}:")
            else:
                written.append(session_id)
        if written:
            sql, params = with_list(store.OWN_SESSIONS, "session_ids", written)
            params |= {"user_id": user_id, "app_id": app_id, "project_id": project_id}
            own.update((session_id, bool(is_own)) for session_id, is_own in await self._database.fetch(sql, params))
        return own

    async def claim(self, user_id: str, session: Session) -> Claim:
        """Make the session the user's; `Forbidden` when it is another's. Follow it by `keep_in` or `drop`."""
        row = await self._database.fetch_one(store.OWNER, session.params(user_id))
        if row is None or not (row[0] and row[1]):
            return await self._database.write(lambda tx: self.claim_in(tx, user_id, session), owner=user_id)
        return Claim(user_id, session, settled=True)

    async def claim_in(self, transaction: Transaction, user_id: str, session: Session) -> Claim:
        """As `claim`, in the transaction of the words themselves: then there is nothing to drop."""
        params = session.params(user_id)
        row = await transaction.fetch_one(store.OWNER, params)
        if row is None or not (row[0] and row[1]):
            await transaction.execute(store.CLAIM, {**params, "now": rfc3339(self._clock())})
            row = await transaction.fetch_one(store.OWNER, params) or (False, False)
        own, settled = row
        if not own:
            raise Forbidden(_ANOTHERS)
        return Claim(user_id, session, settled=bool(settled))

    async def keep_in(self, transaction: Transaction, claim: Claim) -> None:
        """The session holds words of its owner from now on."""
        if not claim.settled:
            params = {**claim.session.params(claim.user_id), "now": rfc3339(self._clock())}
            await transaction.execute(store.KEEP_CLAIM, params)

    async def drop(self, claim: Claim) -> None:
        """The upstream refused the add: give the session up, unless it holds words of the user's other adds, or may."""
        if claim.settled:
            return
        params = claim.session.params(claim.user_id)

        async def work(transaction: Transaction) -> None:
            await transaction.execute(store.LEAVE_CLAIM, params)
            await transaction.execute(store.DROP_CLAIM, params)

        await self._database.write(work, owner=claim.user_id)
