"""What stands before an upstream and leaves most of it as it is."""

from memory_gateway.engine.schemas import Caller, GetReply, GetRequest, MemoryKey, SearchReply, SearchRequest
from memory_gateway.upstream.port import Upstream, UpstreamHealth, UpstreamTraits


class Before:
    """All that reads passes through. Writes, erasure and export are for whoever stands there."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    @property
    def name(self) -> str:
        return self._upstream.name

    @property
    def traits(self) -> UpstreamTraits:
        return self._upstream.traits

    async def search(self, request: SearchRequest, caller: Caller) -> SearchReply:
        return await self._upstream.search(request, caller)

    async def get(self, request: GetRequest, caller: Caller) -> GetReply:
        return await self._upstream.get(request, caller)

    async def seal(self, app_id: str, project_id: str, memory: MemoryKey, caller: Caller) -> None:
        await self._upstream.seal(app_id, project_id, memory, caller)

    async def within(self, request: SearchRequest, episode_ids: list[str], caller: Caller) -> frozenset[str] | None:
        return await self._upstream.within(request, episode_ids, caller)

    async def health(self) -> UpstreamHealth:
        return await self._upstream.health()

    async def close(self) -> None:
        await self._upstream.close()
