"""The first user to write a session owns it, per app and project.

Two users who both call their chat ``1`` would otherwise share the upstream's buffer, and its extraction would mix
their words. A claim counts from the moment before the first add. It is dropped again when nothing of it can have
reached the upstream, so nobody holds a name by failing adds; the claim of a process that died runs out.
"""

from collections.abc import Iterable

from msgspec import Struct

from memory_gateway.gateway.attachments.store import with_list
from memory_gateway.gateway.memories import store
from memory_gateway.gateway.memories.found import Session
from memory_gateway.gateway.memories.names import RESOURCE_PREFIX
from memory_gateway.kit.clock import Clock, rfc3339
from memory_gateway.kit.errors import Forbidden
from memory_gateway.storage.port import Database, Transaction

# Longer than any add may take
_CLAIM_MS = 3_600_000


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
        """Make the session the user's; `Forbidden` when it is another's. Follow it by `keep_in` or `leave`."""
        row = await self._database.fetch_one(store.OWNER, session.params(user_id))
        if row is not None and row[0] and row[1]:
            return Claim(user_id, session, settled=True)
        own, settled = await self._database.write(lambda transaction: self._claim_in(transaction, user_id, session))
        if not own:
            raise Forbidden("this session belongs to another user")
        return Claim(user_id, session, settled=settled)

    async def _claim_in(self, transaction: Transaction, user_id: str, session: Session) -> tuple[bool, bool]:
        now = self._clock()
        params = session.params(user_id)
        times = {"now": rfc3339(now), "claimed_until": rfc3339(now + _CLAIM_MS)}
        await transaction.execute(store.CLAIM, {**params, **times})
        own, settled = await transaction.fetch_one(store.OWNER, params) or (False, False)
        return bool(own), bool(settled)

    async def keep_in(self, transaction: Transaction, claim: Claim) -> None:
        """The session holds words of its owner from now on, so it stays the owner's."""
        if not claim.settled:
            params = {**claim.session.params(claim.user_id), "now": rfc3339(self._clock())}
            await transaction.execute(store.KEEP_CLAIM, params)

    async def leave(self, claim: Claim, *, may_hold_words: bool) -> None:
        """An add failed: drop its claim, unless words may have arrived or another add of the user is under way."""
        if claim.settled:
            return
        params = claim.session.params(claim.user_id)

        async def work(transaction: Transaction) -> None:
            if may_hold_words:
                return await self.keep_in(transaction, claim)
            await transaction.execute(store.LEAVE_CLAIM, params)
            await transaction.execute(store.DROP_CLAIM, params)
            return None

        await self._database.write(work)
