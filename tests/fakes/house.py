"""The whole gateway over any upstream, spoken to over HTTP without a network."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
from msgspec import structs

from memory_gateway.blobs.folder import FolderBlobs
from memory_gateway.blobs.port import BlobStore
from memory_gateway.gateway.accounts.erasure import UserErasure
from memory_gateway.gateway.accounts.export import UserExport
from memory_gateway.gateway.accounts.participants import Participant
from memory_gateway.gateway.accounts.service import Accounts
from memory_gateway.gateway.app import build_app
from memory_gateway.gateway.attachments.service import Attachments
from memory_gateway.gateway.audit.service import Audit
from memory_gateway.gateway.health import Health, free_bytes_of
from memory_gateway.gateway.memories import routes as memories_routes
from memory_gateway.gateway.memories.door import search_door
from memory_gateway.gateway.memories.service import Memories, MemoryRules
from memory_gateway.gateway.metrics import Metrics
from memory_gateway.gateway.resources import routes as resources_routes
from memory_gateway.gateway.resources.service import Resources
from memory_gateway.kit.ids import uuid7_id
from memory_gateway.storage.leases import Leases
from memory_gateway.storage.port import Database
from memory_gateway.upstream.port import Upstream
from tests.fakes.clock import TurnedClock
from tests.fakes.front_door import ADMIN_KEY
from tests.fakes.upstream import RecordingUpstream

Json = dict[str, Any]
MIB = 1 << 20


class House:
    """All rooms on one database and one folder. `close` it before the database."""

    def __init__(
        self, database: Database, folder: Path, upstream: Upstream, *, blobs: BlobStore | None = None, **rules: Any
    ) -> None:
        self.database = database
        self.upstream = upstream
        self.clock = TurnedClock()
        self.data_dir = folder
        self.storage_root = folder / "storage"
        self.blobs = blobs or FolderBlobs(self.storage_root)
        self.audit = Audit(database, self.clock)
        self.accounts = Accounts(database, self.clock, b"key secret")
        self.attachments = Attachments(database, self.clock, uuid7_id, self.blobs)
        self.resources = Resources(
            database,
            self.clock,
            uuid7_id,
            blobs=self.blobs,
            attachments=self.attachments,
            audit=self.audit,
            upstream=upstream,
            leases=Leases(database, self.clock, "house"),
            max_upload_bytes=50 * MIB,
            inline_index_bytes=MIB,
            extraction_timeout=60.0,
        )
        self.memories = Memories(
            database=database,
            clock=self.clock,
            new_id=uuid7_id,
            upstream=upstream,
            accounts=self.accounts,
            attachments=self.attachments,
            resources=self.resources,
            audit=self.audit,
            rules=structs.replace(MemoryRules(data_dir=folder), **rules),
        )
        rooms: list[Participant] = [self.attachments, self.resources, self.memories]
        self.app = build_app(
            accounts=self.accounts,
            user_export=UserExport(self.audit, [self.accounts, *rooms], upstream, self.blobs, folder / "tmp"),
            user_erasure=UserErasure(database, self.clock, rooms, upstream, self.blobs),
            health=Health(database, upstream, free_bytes_of(folder), self.blobs),
            metrics=Metrics(),
            admin_key=ADMIN_KEY.encode(),
            max_body_bytes=72 * MIB,
            rate_limit=None,
            auth_failure_limit=1_000_000.0,
            route_handlers=[*resources_routes.ROUTES, *memories_routes.ROUTES],
            services={"memories": self.memories, "resources": self.resources},
            doors=[search_door(self.memories, 72 * MIB)],
        )
        transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False)  # type: ignore[arg-type]
        self.client = httpx.AsyncClient(transport=transport, base_url="http://gateway")

    async def user(self, user_id: str) -> "User":
        """Register a user."""
        new_user = await self.accounts.create(user_id)
        return User(self.client, user_id, new_user.user_key, self.clock)

    async def close(self) -> None:
        """Let go of what a test that failed holds back, so that nothing waits for ever."""
        if isinstance(self.upstream, RecordingUpstream):
            for gate in self.upstream._gates.values():
                gate.set()
        await self.client.aclose()
        await self.memories.close()
        await self.resources.close()


class User:
    """A user at the door. Every call is a request with the user's own headers."""

    def __init__(self, client: httpx.AsyncClient, user_id: str, user_key: str, clock: TurnedClock) -> None:
        self.user_id = user_id
        self.headers = {"X-User-ID": user_id, "X-User-Key": user_key}
        self.credentials = {"user_id": user_id, "user_key": user_key}
        self._client = client
        self._clock = clock

    def says(self, content: str | list[Json], **more: Any) -> Json:
        """A message of this user, a second after the one before."""
        self._clock.forward(seconds=1)
        message = {"sender_id": self.user_id, "role": "user", "timestamp": self._clock(), "content": content}
        return {**message, **more}

    async def post(self, path: str, body: Json | None = None, **headers: str) -> httpx.Response:
        return await self._client.post(path, json=body, headers={**self.headers, **headers})

    async def add(self, *contents: str | Json, chat: str = "1", **body: Any) -> httpx.Response:
        """Say these texts or messages in a chat."""
        messages = [self.says(content) if isinstance(content, str) else content for content in contents]
        return await self.post("/memories/add", {"conversation_id": chat, "messages": messages, **body})

    async def flush(self, chat: str = "1", **body: Any) -> httpx.Response:
        return await self.post("/memories/flush", {"conversation_id": chat, **body})

    async def ask(self, query: str, **body: Any) -> httpx.Response:
        return await self.post("/memories/search", {"query": query, **body})

    async def search(self, query: str, **body: Any) -> list[Json]:
        """The results of a search that succeeds."""
        response = await self.ask(query, **body)
        assert response.status_code == 200, response.text
        results: list[Json] = response.json()["results"]
        return results

    async def edit(
        self, method: str, memory_id: str, action: str = "", *, body: Json | None = None, place: Json | None = None
    ) -> httpx.Response:
        """An edit of a memory, its id wholly encoded."""
        path = f"/memories/{quote(memory_id, safe='')}{action}"
        return await self._client.request(method, path, headers=self.headers, json=body, params=place)

    async def delete(self, memory_id: str, **place: str) -> httpx.Response:
        return await self.edit("DELETE", memory_id, place=place)

    async def override(self, memory_id: str, text: str, **place: str) -> httpx.Response:
        return await self.edit("PUT", memory_id, body={"text": text}, place=place)

    async def upload(self, name: str, content: bytes, **fields: str) -> httpx.Response:
        return await self._client.post("/resources", headers=self.headers, files={"file": (name, content)}, data=fields)


def ids(results: Sequence[Json]) -> list[str]:
    return [result["id"] for result in results]


def texts(results: Sequence[Json]) -> list[str]:
    return [result["text"] for result in results]
