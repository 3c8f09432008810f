from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memory_gateway.blobs.folder import FolderBlobs
from memory_gateway.gateway.attachments.schemas import StagedAttachments
from memory_gateway.gateway.attachments.service import Attachments
from memory_gateway.kit.ids import uuid7_id
from memory_gateway.storage.sqlite import SqliteDatabase
from tests.fakes.clock import TurnedClock


@pytest.fixture
def clock() -> TurnedClock:
    return TurnedClock()


@pytest.fixture
def storage_root(tmp_path: Path) -> Path:
    return tmp_path / "storage"


@pytest.fixture
async def attachments(database: SqliteDatabase, clock: TurnedClock, storage_root: Path) -> AsyncIterator[Attachments]:
    attachments = Attachments(database, clock, uuid7_id, FolderBlobs(storage_root))
    yield attachments
    await attachments.close()


async def committed(attachments: Attachments, staged: StagedAttachments) -> None:
    """Write the rows in a transaction of their own, as an add does in its last one."""
    await attachments._database.write(lambda transaction: attachments.commit_in(transaction, staged))
