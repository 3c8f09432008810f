"""Words on their way in: checked, claimed for their owner, then handed to the upstream with their files."""

import logging

from msgspec import Raw

from memory_gateway.engine.schemas import AddReply, AddRequest, Caller, FlushReply, FlushRequest
from memory_gateway.gateway.accounts.service import Accounts
from memory_gateway.gateway.attachments.schemas import StagedAttachments
from memory_gateway.gateway.attachments.service import Attachments
from memory_gateway.gateway.audit.service import Audit
from memory_gateway.gateway.memories.found import Session
from memory_gateway.gateway.memories.messages import check_messages, check_senders
from memory_gateway.gateway.memories.ownership import Claim, Sessions
from memory_gateway.gateway.memories.schemas import AddMemories, FlushMemories
from memory_gateway.gateway.memories.uris import UriPolicy
from memory_gateway.gateway.names import app_or_project, session_name
from memory_gateway.kit.errors import MemoryGatewayError, StorageUnavailable
from memory_gateway.storage.port import Database, Transaction
from memory_gateway.upstream.port import Upstream

_logger = logging.getLogger(__name__)


class Intake:
    """Adds and flushes. What an upstream refuses leaves no file, no mapping and no claim behind.

    After any other failure the session stays the user's, as it may hold words; the same request repeated completes it.
    """

    def __init__(
        self,
        *,
        database: Database,
        upstream: Upstream,
        accounts: Accounts,
        attachments: Attachments,
        audit: Audit,
        sessions: Sessions,
        uri_policy: UriPolicy,
        allow_other_senders: bool,
    ) -> None:
        self._database = database
        self._upstream = upstream
        self._accounts = accounts
        self._attachments = attachments
        self._audit = audit
        self._sessions = sessions
        self._uri_policy = uri_policy
        self._allow_other_senders = allow_other_senders

    async def add(self, user_id: str, body: AddMemories, wire_messages: Raw | None = None) -> AddReply:
        """The upstream's answer. `Forbidden` for a session of another user, `InvalidInput` naming the field."""
        request = await self._checked(user_id, body, wire_messages)
        await self._sessions.has_written(user_id, _session(request))
        staged = await self._attachments.stage(
            user_id, request.app_id, request.project_id, request.session_id, request.messages
        )
        try:
            return await self._handed_over(user_id, request, staged)
        except BaseException:
            await self._discard(staged)
            raise

    async def flush(self, user_id: str, body: FlushMemories) -> FlushReply:
        """The upstream's answer. `Forbidden` for a session of another user; one that nobody wrote holds nothing."""
        request = FlushRequest(
            session_name(body.session_id, body.conversation_id),
            app_or_project(body.app_id, "app_id"),
            app_or_project(body.project_id, "project_id"),
        )
        if not await self._sessions.has_written(user_id, _session(request)):
            return FlushReply("no_extraction")
        reply = await self._upstream.flush(request, Caller(user_id=user_id))
        await self._audit.record(user_id, "flush", "session", request.session_id)
        return reply

    async def _checked(self, user_id: str, body: AddMemories, wire_messages: Raw | None) -> AddRequest:
        request = AddRequest(
            session_name(body.session_id, body.conversation_id),
            tuple(body.messages),
            app_or_project(body.app_id, "app_id"),
            app_or_project(body.project_id, "project_id"),
            wire_messages,
        )
        check_messages(request.messages)
        await check_senders(
            user_id,
            request.messages,
            allow_others=self._allow_other_senders,
            is_registered=self._accounts.is_taken,
        )
        if self._upstream.traits.opens_client_uris:
            self._uri_policy.check(request.messages)
        return request

    async def _handed_over(self, user_id: str, request: AddRequest, staged: StagedAttachments) -> AddReply:
        """The session is the user's before the upstream gets a word, and stays so unless it clearly took none."""
        if self._upstream.traits.writes_along:
            along = _Along(self, user_id, _session(request), staged)
            return await self._upstream.add(request, Caller(user_id=user_id, along=along))
        claim = await self._sessions.claim(user_id, _session(request))
        try:
            reply = await self._upstream.add(request, Caller(user_id=user_id))
        except MemoryGatewayError as error:
            if _is_refusal(error):
                await self._drop(claim)
            raise
        try:
            await self._database.write(lambda transaction: self.added_in(transaction, claim, staged), owner=user_id)
        except StorageUnavailable as error:
            message = "the messages were added, but could not be recorded with their files: send the same request again"
            raise StorageUnavailable(message) from error
        return reply

    async def _drop(self, claim: Claim) -> None:
        try:
            await self._sessions.drop(claim)
        except StorageUnavailable:
            _logger.warning("a refused add keeps its session claimed: the claim could not be dropped", exc_info=True)

    async def _discard(self, staged: StagedAttachments) -> None:
        """No row names these files, so nothing can refer to them, whatever the upstream holds of their messages."""
        try:
            await self._attachments.discard(staged)
        except StorageUnavailable:
            _logger.warning("files of a failed add could not be removed now; a later sweep will", exc_info=True)

    async def claim_in(self, transaction: Transaction, user_id: str, session: Session) -> Claim:
        """Make the session the user's."""
        return await self._sessions.claim_in(transaction, user_id, session)

    async def added_in(self, transaction: Transaction, claim: Claim, staged: StagedAttachments) -> None:
        """The session holds words of the user's, and the add is on record with its files."""
        await self._sessions.keep_in(transaction, claim)
        await self._attachments.commit_in(transaction, staged)
        await self._audit.record_in(transaction, claim.user_id, "add", "session", claim.session.session_id)


class _Along:
    """Claim and record of one add, for an upstream that writes them with the words: all are stored, or nothing is."""

    def __init__(self, intake: Intake, user_id: str, session: Session, staged: StagedAttachments) -> None:
        self._intake = intake
        self._user_id = user_id
        self._session = session
        self._staged = staged
        self._claim = Claim(user_id, session, settled=False)

    async def before(self, transaction: Transaction) -> None:
        self._claim = await self._intake.claim_in(transaction, self._user_id, self._session)

    async def after(self, transaction: Transaction) -> None:
        await self._intake.added_in(transaction, self._claim, self._staged)


def _session(request: AddRequest | FlushRequest) -> Session:
    return Session(request.app_id, request.project_id, request.session_id)


def _is_refusal(error: MemoryGatewayError) -> bool:
    """The request's own fault, so nothing of it was taken. After any other fault words may lie in the upstream."""
    return error.status < 500
