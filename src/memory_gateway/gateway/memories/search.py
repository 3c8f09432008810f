"""One search: scopes become upstream requests, replies become one list. One pass, no way back.

Merge the scopes, leave out what is deleted, put in the user's own texts, sort and cut, find the attachments.
"""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct, structs

from memory_gateway.engine.schemas import Caller, MemoryKey
from memory_gateway.gateway.attachments.matching import FileNames
from memory_gateway.gateway.attachments.service import Attachments
from memory_gateway.gateway.memories.concurrent import in_order
from memory_gateway.gateway.memories.edits import Edits
from memory_gateway.gateway.memories.found import Found, MemoryRef
from memory_gateway.gateway.memories.merge import UNCOUNTED, best, best_of, counted, found, found_in, merged
from memory_gateway.gateway.memories.overrides import Override, floor, query_words, score, share
from memory_gateway.gateway.memories.ownership import Sessions
from memory_gateway.gateway.memories.schemas import MemoryResult, Scope, SearchMemories, SearchResults
from memory_gateway.gateway.memories.scopes import Plan, Question, plans, question
from memory_gateway.gateway.memories.shown import ShownMemories
from memory_gateway.gateway.memories.visibility import Hidden, Visibility
from memory_gateway.gateway.resources.service import Resources
from memory_gateway.kit.files import off_loop
from memory_gateway.upstream.port import Upstream

_MOST = 100
_READ_INLINE = 50_000  # characters
_NO_FILES = FileNames(())


class _View(Struct, frozen=True):
    """What this user's edits and rights make of this search. ``shares``: how much of the query an override holds."""

    asked: Question
    caller: Caller
    visibility: Visibility
    overrides: dict[MemoryKey, Override]
    shares: dict[MemoryKey, float]


class Search:
    """Searches the upstream for a user. Everything but the upstream's calls is reads by key; nothing is written."""

    def __init__(
        self,
        *,
        upstream: Upstream,
        sessions: Sessions,
        edits: Edits,
        shown: ShownMemories,
        attachments: Attachments,
        resources: Resources,
        shared_agents: bool,
        resource_batch: int,
    ) -> None:
        self._upstream = upstream
        self._sessions = sessions
        self._edits = edits
        self._shown = shown
        self._attachments = attachments
        self._resources = resources
        self._shared_agents = shared_agents
        self._resource_batch = resource_batch

    async def search(self, user_id: str, body: SearchMemories) -> SearchResults:
        """The user's memories that match, best first. Upstream errors pass through."""
        asked = question(user_id, body)
        asked_plans = plans(asked, await self._resource_sessions(asked), self._resource_batch)
        view = await self._view(asked)
        replies = await in_order(lambda plan: self._ask(plan, view), asked_plans)
        memories = _overridden(merged(replies), view)
        memories += await self._found_by_override(view, asked_plans, memories)
        chosen = best(memories, asked.top_k)
        self._shown.note(user_id, asked.app_id, asked.project_id, chosen)
        return SearchResults(await self._results(asked, chosen))

    async def _resource_sessions(self, asked: Question) -> list[str]:
        if "resources" not in asked.scopes:
            return []
        return await self._resources.live_sessions(asked.user_id, asked.app_id, asked.project_id)

    async def _view(self, asked: Question) -> _View:
        place = (asked.user_id, asked.app_id, asked.project_id)
        traits = self._upstream.traits
        edits = await self._edits.active(*place)
        shares = await _shares(asked, edits.overrides.values()) if edits.overrides else {}
        hidden = Hidden(
            memories=frozenset(edits.deleted),
            contents=frozenset() if traits.stable_ids else frozenset(edits.deleted.values()),
            left_out=frozenset(key for key, part in shares.items() if not part),
            sessions=await self._resources.deleted_sessions(*place),
        )
        return _View(
            asked=asked,
            caller=Caller(
                user_id=asked.user_id,
                hidden=tuple(edits.deleted),
                left_out=hidden.left_out,
                hidden_sessions=hidden.sessions,
                shared_agents=self._shared_agents,
            ),
            visibility=Visibility(
                self._sessions,
                *place,
                hidden,
                any_case=self._shared_agents,
                any_skill=self._shared_agents or traits.separates_agents,
            ),
            overrides=edits.overrides,
            shares=shares,
        )

    async def _ask(self, plan: Plan, view: _View) -> list[Found]:
        """One scope's visible memories. Deleted ones must not eat the answer: then it is asked once more, for all."""
        seen = list(found_in(plan.scope, await self._upstream.search(plan.request, view.caller)))
        kept = await view.visibility.visible(seen)
        top_k = plan.request.top_k
        if top_k in {-1, _MOST} or counted(kept) == counted(seen) or counted(kept) >= top_k:
            return kept
        wider = structs.replace(plan.request, top_k=_MOST)
        more = found_in(plan.scope, await self._upstream.search(wider, view.caller))
        return merged([kept, await view.visibility.visible(more)])

    async def _found_by_override(self, view: _View, asked_plans: Sequence[Plan], memories: list[Found]) -> list[Found]:
        """Memories that only the user's own text brings up, taken from their snapshots."""
        here = {one.key for one in memories}
        waiting = [view.overrides[key] for key, part in view.shares.items() if part and key not in here]
        if not waiting:
            return []
        best_score = best_of(memories)
        scores = {one.key: score(view.shares[one.key], best_score) for one in waiting}
        placed = await self._placed(view, asked_plans, waiting)
        likely = [key for key in placed if scores[key] >= floor(view.asked)]
        likely.sort(key=lambda key: -scores[key])
        most = _MOST if view.asked.top_k == -1 else view.asked.top_k
        restored = [await self._restored(view, key, placed[key], scores[key]) for key in likely[:most]]
        return await view.visibility.visible(one for one in restored if one is not None)

    async def _placed(
        self, view: _View, asked_plans: Sequence[Plan], waiting: list[Override]
    ) -> dict[MemoryKey, Scope]:
        """Each of them with the most specific scope that covers it; the others are not in question."""
        placed: dict[MemoryKey, Scope] = {}
        for plan in asked_plans:
            covered = [one.key for one in waiting if plan.sessions is None or one.session_id in plan.sessions]
            kept = await self._within(view, plan, [key for key in covered if key not in placed])
            placed.update(dict.fromkeys(kept, plan.scope))
        return placed

    async def _within(self, view: _View, plan: Plan, keys: list[MemoryKey]) -> Iterable[MemoryKey]:
        """Those that the caller's own filters keep. The gateway reads no filters: the upstream says which."""
        if not view.asked.filters or not keys:
            return keys
        episodes = [key.memory_id for key in keys if key.memory_type == "episode"]
        kept = await self._upstream.within(plan.request, episodes, view.caller) if episodes else None
        return [key for key in keys if kept and key.memory_type == "episode" and key.memory_id in kept]

    async def _restored(self, view: _View, key: MemoryKey, scope: Scope, own_score: float) -> Found | None:
        """The memory as it was last shown, if it belongs to the owner that is searched."""
        asked = view.asked
        ref = MemoryRef(asked.app_id, asked.project_id, key.memory_type, key.memory_id)
        raw = await self._shown.snapshot(asked.user_id, ref)
        if raw is None or raw.get("agent_id") != asked.agent_id:
            return None
        return structs.replace(found(scope, key, raw), score=own_score, override=view.overrides[key].text)

    async def _results(self, asked: Question, chosen: list[Found]) -> list[MemoryResult]:
        sessions = list(dict.fromkeys(_sessions(chosen)))
        attachments = await self._attachments.for_sessions(asked.user_id, asked.app_id, asked.project_id, sessions)
        names = {session_id: FileNames(files) for session_id, files in attachments.items()}
        resources = await self._resources.by_session(asked.user_id, sessions)
        results = []
        for one in chosen:
            resource_id = resources.get(one.session_id or "")
            files = names.get(one.session_id or "", _NO_FILES)
            results.append(
                MemoryResult(
                    id=one.key.memory_id,
                    memory_type=one.key.memory_type,
                    session_id=one.session_id,
                    text=one.text if one.override is None else one.override,
                    score=one.score,
                    source_scope=one.scope,
                    resource_id=resource_id,
                    resource_uri=None if resource_id is None else f"resource://{resource_id}",
                    raw=one.raw,
                    attachments=files.named_in(one.raw),
                    overridden=one.override is not None,
                )
            )
        return results


async def _shares(asked: Question, overrides: Iterable[Override]) -> dict[MemoryKey, float]:
    """How much of the query each of the user's own texts holds."""
    texts = {one.key: one.text for one in overrides if one.key.memory_type not in UNCOUNTED}

    def shares() -> dict[MemoryKey, float]:
        words = query_words(asked.query)
        return {key: share(words, text) for key, text in texts.items()}

    few = sum(map(len, texts.values())) <= _READ_INLINE
    return shares() if few else await off_loop(shares)


def _sessions(memories: Iterable[Found]) -> Iterator[str]:
    return (one.session_id for one in memories if one.session_id is not None)


def _overridden(memories: list[Found], view: _View) -> list[Found]:
    """With the user's own texts, each scored by its own words where they are worth more than the replaced ones."""
    best_score = best_of(memories)
    return [
        one
        if (override := view.overrides.get(one.key)) is None
        else structs.replace(one, override=override.text, score=_raised(one, view, best_score))
        for one in memories
    ]


def _raised(one: Found, view: _View, best_score: float | None) -> float | None:
    if one.score is None or one.key not in view.shares:
        return one.score
    return max(one.score, score(view.shares[one.key], best_score))
