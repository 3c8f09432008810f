"""Words on their way in: checked, claimed for their owner, then handed to the upstream with their files."""

from msgspec import Raw

from memory_gateway.engine.schemas import AddReply, AddRequest, Caller, FlushReply, FlushRequest
from memory_gateway.gateway.accounts.service import Accounts
from memory_gateway.gateway.attachments.schemas import StagedAttachments
from memory_gateway.gateway.attachments.service import Attachments
from memory_gateway.gateway.audit.service import Audit
from memory_gateway.gateway.memories.found import Session
from memory_gateway.gateway.memories.messages import check_messages, check_senders
from memory_gateway.gateway.memories.names import app_or_project, session_name
from memory_gateway.gateway.memories.ownership import Claim, Sessions
from memory_gateway.gateway.memories.schemas import AddMemories, FlushMemories
from memory_gateway.gateway.memories.uris import UriPolicy
from memory_gateway.kit.errors import Forbidden, MemoryGatewayError, UpstreamTimeout, UpstreamUnreachable
from memory_gateway.storage.port import Database, Transaction
from memory_gateway.upstream.port import Upstream


class Intake:
    """Adds and flushes. Nothing half done: what an upstream refuses leaves no file, no mapping and no claim behind."""

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
        claim = await self._sessions.claim(user_id, _session(request))
        staged = await self._staged(claim, request)
        try:
            reply = await self._upstream.add(request, Caller(user_id=user_id))
        except BaseException as error:
            await self._undo(claim, staged, may_hold_words=_may_have_arrived(error))
            raise
        await self._database.write(lambda transaction: self._added_in(transaction, claim, staged))
        return reply

    async def flush(self, user_id: str, body: FlushMemories) -> FlushReply:
        """The upstream's answer. `Forbidden` for a session of another user; one that nobody wrote holds nothing."""
        request = FlushRequest(
            session_name(body.session_id, body.conversation_id),
            app_or_project(body.app_id, "app_id"),
            app_or_project(body.project_id, "project_id"),
        )
        own = await self._sessions.is_own(user_id, _session(request))
        if own is None:
            return FlushReply("no_extraction")
        if not own:
            raise Forbidden("this session belongs to another user")
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

    async def _staged(self, claim: Claim, request: AddRequest) -> StagedAttachments:
        try:
            return await self._attachments.stage(
                claim.user_id, request.app_id, request.project_id, request.session_id, request.messages
            )
        except BaseException:
            await self._sessions.leave(claim, may_hold_words=False)
            raise

    async def _undo(self, claim: Claim, staged: StagedAttachments, *, may_hold_words: bool) -> None:
        await self._sessions.leave(claim, may_hold_words=may_hold_words)
        await self._attachments.discard(staged)

    async def _added_in(self, transaction: Transaction, claim: Claim, staged: StagedAttachments) -> None:
        await self._sessions.keep_in(transaction, claim)
        await self._attachments.commit_in(transaction, staged)
        await self._audit.record_in(transaction, claim.user_id, "add", "session", claim.session.session_id)


def _session(request: AddRequest | FlushRequest) -> Session:
    return Session(request.app_id, request.project_id, request.session_id)


def _may_have_arrived(error: BaseException) -> bool:
    """False only where the upstream said no: after a lost connection the words may lie in its buffer."""
    refused = isinstance(error, MemoryGatewayError)
    return not refused or isinstance(error, UpstreamTimeout | UpstreamUnreachable)
