"""One server process's view of the files' side; several may share a front door's database and folder."""

from litestar import Litestar, Router
from litestar.di import Provide

from memory_gateway.gateway.attachments.service import Attachments
from memory_gateway.gateway.resources.routes import ROUTES
from memory_gateway.gateway.resources.service import Resources
from memory_gateway.kit.ids import uuid7_id
from memory_gateway.storage.leases import Leases
from tests.fakes.front_door import FrontDoor
from tests.fakes.upstream import RecordingUpstream

MAX_UPLOAD_BYTES = 300_000
INLINE_INDEX_BYTES = 1000


class Process:
    """Its rooms, on limits small enough for tests."""

    def __init__(
        self, front: FrontDoor, holder: str, upstream: RecordingUpstream, *, max_upload_bytes: int = MAX_UPLOAD_BYTES
    ) -> None:
        self.front = front
        self.upstream = upstream
        self.attachments = Attachments(front.database, front.clock, uuid7_id, front.blobs)
        self.resources = Resources(
            front.database,
            front.clock,
            uuid7_id,
            blobs=front.blobs,
            attachments=self.attachments,
            audit=front.audit,
            upstream=upstream,
            leases=Leases(front.database, front.clock, holder),
            max_upload_bytes=max_upload_bytes,
            inline_index_bytes=INLINE_INDEX_BYTES,
            extraction_timeout=60.0,
        )

    def app(self) -> Litestar:
        services = {"resources": Provide(lambda: self.resources, sync_to_thread=False)}
        return self.front.app(route_handlers=[Router("/", route_handlers=ROUTES, dependencies=services)])

    async def close(self) -> None:
        await self.resources.close()
        await self.attachments.close()
