"""Vectors follow in the background: in order of turns, so a count a space says what is left after any restart."""

import asyncio
import contextlib
import logging
import time
from collections import defaultdict
from functools import partial

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from memory_gateway.embeddings.cosine_scale import CosineScales
from memory_gateway.embeddings.port import Embedder
from memory_gateway.engine import store
from memory_gateway.engine.columns import BLOCK_TURNS, block_of, load_records
from memory_gateway.engine.held_vectors import Int8Rows, as_bytes, first_vector, served_set, stored_model
from memory_gateway.engine.segments import Turn
from memory_gateway.engine.vector_sets import begin_anew, drop_former
from memory_gateway.kit.errors import EmbeddingUnavailable, MemoryGatewayError
from memory_gateway.storage.leases import Leases
from memory_gateway.storage.port import Database, Row, Transaction

BATCH_TURNS = 32
_LEASE = "engine:embedding"
_LEASE_SECONDS = 60.0
_RENEWAL_SECONDS = 20.0
_IDLE_SECONDS = 1.0
_FAULT_SECONDS = 10.0

_logger = logging.getLogger(__name__)


class Backlog(Struct, frozen=True):
    """The next turns of a space that have no vector in a set, and what they say.

    ``former_count``: how many turns have one of the former model, by which the space is searched meanwhile.
    """

    space_no: int
    first: int
    texts: list[str]
    set_no: int = 0
    former_count: int = 0


async def next_backlog(transaction: Transaction, model: str, passed: frozenset[int] = frozenset()) -> Backlog | None:
    """The next turns of the space with the fewest waiting, so that nobody waits for another's book; None for none.

    Spaces with a former model come last: what is in them is found by its vectors. ``model`` as spaces remember it.
    """
    rows = await transaction.fetch(store.BACKLOG_SPACES, {"model": model})
    row = next((row for row in rows if row[0] not in passed), None)
    if row is None:
        return None
    space_no, first, turns, set_no, former_count = row
    end = min(turns, first + BATCH_TURNS)
    return Backlog(space_no, first, await texts_to_embed(transaction, space_no, first, end), set_no, former_count)


class Sample(Struct, frozen=True):
    """A text that was embedded, and its vector as it is stored."""

    text: str
    vector: Int8Rows


async def sample_of(transaction: Transaction, space_no: int, model: str) -> Sample | None:
    """Of the vectors that the space is searched by; None where they are not of this model."""
    served = await served_set(transaction, space_no)
    if served is None or served.model != model:
        return None
    (text,) = await texts_to_embed(transaction, space_no, 0, 1)
    return Sample(text, await first_vector(transaction, space_no, served))


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
    place = {"space_no": backlog.space_no, "set_no": backlog.set_no}
    moved = await transaction.execute(
        store.MARK_EMBEDDED,
        {
            **place,
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
        ({**place, "block_no": block, "vectors": b"".join(parts)} for block, parts in blocks.items()),
    )
    if 0 < backlog.former_count <= backlog.first + len(vectors):
        await drop_former(transaction, backlog.space_no, backlog.set_no)
    return True


class VectorWorker:
    """One task a process; a lease lets only one process embed.

    It keeps the lease until it stops: else processes with different models would make each other's vectors anew in
    turns, without end.
    """

    def __init__(self, database: Database, embedder: Embedder, leases: Leases, scales: CosineScales) -> None:
        self._database = database
        self._embedder = embedder
        self._scales = scales
        self._leases = leases
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._reachable = True
        self._renew_at: float | None = None  # None while another process may hold the lease
        self._told = False

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
            self._renew_at = None

    async def catch_up(self) -> int:
        """Embed while something is left and the lease holds; the number of turns embedded."""
        if not self._embedder.dimensions:
            await self._scales.measure()  # some models tell their dimensions with their first vectors
        model = stored_model(self._embedder.model, self._embedder.dimensions)
        done = 0
        failed: set[int] = set()
        while True:
            backlog = await self._database.read(lambda transaction: next_backlog(transaction, model, frozenset(failed)))
            if (backlog is None or backlog.former_count) and await self._begin_anew(model):
                continue
            if backlog is None or not await self._leads():
                break
            try:
                done += await self._embed(backlog)
                self._reachable = True  # known now, and not only when all of a long backlog is done
            except EmbeddingUnavailable:
                # one space's text may be at fault; when a second one fails too, the model is away
                if failed:
                    raise
                failed.add(backlog.space_no)
        if failed and not done:
            raise EmbeddingUnavailable("the embedding model refuses a text, or cannot be reached")
        return done

    async def _begin_anew(self, model: str) -> bool:
        """Some more of the spaces with vectors of another model, each by itself; False where there are none."""
        outdated = await self._database.fetch(store.OUTDATED_SPACES, {"model": model})
        if not outdated or not await self._leads():
            self._tell_of_another(outdated)
            return False
        _logger.info("the embedding model has changed: the vectors of %s spaces or more are made anew", len(outdated))
        for (space_no,) in outdated:
            await self._database.write(partial(begin_anew, space_no=space_no, model=model), owner=None)
        return True

    def _tell_of_another(self, outdated: list[Row]) -> None:
        if outdated and not self._told:
            _logger.warning(
                "another process embeds, and some memory has vectors of another model than this process is set to; "
                "this process's model has its turn when that process ends"
            )
        self._told = bool(outdated)

    async def _leads(self) -> bool:
        """Whether this process is the one that embeds, as far as the others know it as well."""
        now = time.monotonic()
        if self._renew_at is None or now >= self._renew_at:
            leads = await self._leases.acquire(_LEASE, seconds=_LEASE_SECONDS)
            self._renew_at = now + _RENEWAL_SECONDS if leads else None
        return self._renew_at is not None

    async def _embed(self, backlog: Backlog) -> int:
        vectors = await self._embedder.passages(backlog.texts)
        model = self._embedder.model
        saved = await self._database.write(
            lambda transaction: save_vectors(transaction, backlog, vectors, model), owner=None
        )
        return len(vectors) if saved else 0

    async def _run(self) -> None:
        # the model is loaded, at the very first start built, before anybody waits for it
        with contextlib.suppress(EmbeddingUnavailable):  # said by `healthy` as soon as there is something to embed
            await self._scales.measure()
        while True:
            pause = _IDLE_SECONDS
            try:
                await self.catch_up()
                if self._renew_at is not None:
                    await self._leads()
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
