"""Vectors follow in the background: in order of turns, so a count a space says what is left after any restart."""

import asyncio
import contextlib
import logging
from collections import defaultdict

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from memory_gateway.embeddings.cosine_scale import CosineScales
from memory_gateway.embeddings.port import Embedder
from memory_gateway.engine import store
from memory_gateway.engine.columns import BLOCK_TURNS, block_of, load_records
from memory_gateway.engine.held_vectors import as_bytes, stored_model
from memory_gateway.engine.segments import Turn
from memory_gateway.kit.errors import EmbeddingUnavailable, MemoryGatewayError
from memory_gateway.storage.leases import Leases
from memory_gateway.storage.port import Database, Transaction

BATCH_TURNS = 32
_LEASE = "engine:embedding"
_LEASE_SECONDS = 60.0
_IDLE_SECONDS = 1.0
_FAULT_SECONDS = 10.0

_logger = logging.getLogger(__name__)


class Backlog(Struct, frozen=True):
    """The next turns of a space that have no vector, and what they say."""

    space_no: int
    first: int
    texts: list[str]


async def next_backlog(transaction: Transaction, passed: frozenset[int] = frozenset()) -> Backlog | None:
    """The next turns of the space with the fewest waiting, so that nobody waits for another's book; None for none."""
    rows = (row for row in await transaction.fetch(store.BACKLOG_SPACES) if row[0] not in passed)
    row = next(rows, None)
    if row is None:
        return None
    space_no, first, end = row[0], row[1], min(row[2], row[1] + BATCH_TURNS)
    return Backlog(space_no, first, await texts_to_embed(transaction, space_no, first, end))


async def texts_to_embed(transaction: Transaction, space_no: int, first: int, end: int) -> list[str]:
    """For each turn its words after those of the turn before it in its segment: a window of two."""
    blocks = {"space_no": space_no, "first_block": block_of(first), "last_block": block_of(end - 1)}
    packed = await transaction.fetch(store.RECORDS_BETWEEN, blocks)
    offset = first - block_of(first) * BLOCK_TURNS
    previous = load_records(block for (block,) in packed)["previous"][offset : offset + end - first]
    turns = await _turns(transaction, space_no, first, end)
    for number in {int(number) - 1 for number in previous if number} - turns.keys():
        turns |= await _turns(transaction, space_no, number, number + 1)
    return [_window(turns.get(int(number) - 1), turns[turn_no]) for turn_no, number in enumerate(previous, first)]


async def _turns(transaction: Transaction, space_no: int, first: int, end: int) -> dict[int, Turn]:
    params = {"space_no": space_no, "first": first, "end": end}
    return {row[0]: Turn(*row) for row in await transaction.fetch(store.TURN_RANGE, params)}


def _window(before: Turn | None, turn: Turn) -> str:
    own = f"{turn.speaker}: {turn.shown}"
    if before is None or before.segment_no != turn.segment_no:
        return own
    return f"{before.speaker}: {before.shown}\n{own}"


async def save_vectors(transaction: Transaction, backlog: Backlog, vectors: NDArray[np.float32], model: str) -> bool:
    """Append the vectors; False where another process has been here meanwhile."""
    moved = await transaction.execute(
        store.MARK_EMBEDDED,
        {
            "space_no": backlog.space_no,
            "count": len(vectors),
            "expected": backlog.first,
            "model": stored_model(model, vectors.shape[1]),
        },
    )
    if not moved:
        return False
    blocks: defaultdict[int, list[bytes]] = defaultdict(list)
    for offset, vector in enumerate(as_bytes(vectors)):
        blocks[block_of(backlog.first + offset)].append(vector.tobytes())
    await transaction.execute_many(
        store.APPEND_VECTORS,
        (
            {"space_no": backlog.space_no, "block_no": block, "vectors": b"".join(parts)}
            for block, parts in blocks.items()
        ),
    )
    return True


async def drop_outdated(transaction: Transaction, model: str) -> None:
    """Forget vectors of another model, so that they are made anew. ``model`` as the spaces remember it."""
    for (space_no,) in await transaction.fetch(store.OUTDATED_SPACES, {"model": model}):
        await transaction.execute(store.RESET_VECTORS, {"space_no": space_no})
        await transaction.execute(store.DELETE_VECTORS, {"space_no": space_no})


class VectorWorker:
    """One task a process; a lease lets only one process embed at a time."""

    def __init__(self, database: Database, embedder: Embedder, leases: Leases, scales: CosineScales) -> None:
        self._database = database
        self._embedder = embedder
        self._scales = scales
        self._leases = leases
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._reachable = True

    @property
    def healthy(self) -> bool:
        """False while the model cannot be reached, or when the task has died."""
        return self._reachable and not (self._task is not None and self._task.done())

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="vectors")

    def wake(self) -> None:
        """Something was added."""
        self._wake.set()

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            await self._leases.release(_LEASE)

    async def catch_up(self) -> int:
        """Embed while something is left and the lease holds; the number of turns embedded."""
        if not self._embedder.dimensions:
            await self._scales.measure()  # some models tell their dimensions with their first vectors
        model = stored_model(self._embedder.model, self._embedder.dimensions)
        while await self._database.fetch_one(store.OUTDATED_SPACES, {"model": model}) is not None:
            await self._database.write(lambda transaction: drop_outdated(transaction, model))
        done = 0
        failed: set[int] = set()
        while backlog := await self._database.read(lambda transaction: next_backlog(transaction, frozenset(failed))):
            if not await self._leases.acquire(_LEASE, seconds=_LEASE_SECONDS):
                break
            try:
                done += await self._embed(backlog)
            except EmbeddingUnavailable:
                # one space's text may be at fault; when a second one fails too, the model is away
                if failed:
                    raise
                failed.add(backlog.space_no)
        if failed and not done:
            raise EmbeddingUnavailable("the embedding model refuses a text, or cannot be reached")
        return done

    async def _embed(self, backlog: Backlog) -> int:
        vectors = await self._embedder.passages(backlog.texts)
        model = self._embedder.model
        await self._database.write(lambda transaction: save_vectors(transaction, backlog, vectors, model))
        return len(vectors)

    async def _run(self) -> None:
        # the model is loaded, at the very first start built, before anybody waits for it
        with contextlib.suppress(EmbeddingUnavailable):  # said by `healthy` as soon as there is something to embed
            await self._scales.measure()
        while True:
            pause = _IDLE_SECONDS
            try:
                await self.catch_up()
                self._reachable = True
            except MemoryGatewayError as error:
                self._reachable, pause = False, _FAULT_SECONDS
                _logger.warning("embedding paused: %s", error.message)
            except Exception:
                self._reachable, pause = False, _FAULT_SECONDS
                _logger.exception("embedding failed; it goes on")
            # not wait_for: on Python 3.11 it can swallow a cancellation
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            self._wake.clear()
