"""Consolidation: a plan made on a snapshot, carried out in one transaction if the snapshot is still true."""

import asyncio

from msgspec import Struct
from msgspec.structs import replace

from memory_gateway.memory_service.entries import store
from memory_gateway.memory_service.entries.matching import load_entry
from memory_gateway.memory_service.entries.merging import consolidated
from memory_gateway.memory_service.entries.nearest import Nearest
from memory_gateway.memory_service.entries.owners import Owner, entry_key, entry_no_of, find_owner, load_owner
from memory_gateway.memory_service.entries.planning import Candidate, Plan, Planner
from memory_gateway.memory_service.entries.schemas import MemoryEntry
from memory_gateway.memory_service.entries.stored import StoredEntry
from memory_gateway.memory_service.entries.writing import Writing
from memory_gateway.storage.port import Database, Row, Transaction

_READ_AT_ONCE = 2048
_PATIENCE = 3


class _Snapshot(Struct):
    """A planner, whose entries it plans for, and the last of the user's changes that it knows."""

    planner: Planner
    user_no: int
    change_no: int


class Consolidation:
    """One run for one user. ``now`` decides what has expired and when the survivors were updated."""

    def __init__(self, database: Database, nearest: Nearest, user_id: str, now: str) -> None:
        self._database = database
        self._nearest = nearest
        self._user_id = user_id
        self._now = now

    async def run(self) -> int:
        """How many entries are gone into others."""
        owner, candidates = await self._database.read(self._load)
        if owner is None:
            return 0
        snapshot = _Snapshot(await asyncio.to_thread(Planner, candidates), owner.user_no, owner.change_no)
        for _ in range(_PATIENCE):
            plan = await asyncio.to_thread(snapshot.planner.plan)
            if not plan.steps or await self._carry_out(plan, snapshot):
                return len(plan.steps)
            await self._database.read(lambda transaction: self._catch_up(transaction, snapshot))
        # others write all the time: the rest, which is little by now, is done while they wait
        return await self._database.write(lambda transaction: self._finish(transaction, snapshot), owner=self._user_id)

    async def _carry_out(self, plan: Plan, snapshot: _Snapshot) -> bool:
        """False where others have written since."""

        async def work(transaction: Transaction) -> bool:
            owner = await load_owner(transaction, snapshot.user_no)
            if owner is None or owner.change_no != snapshot.change_no:
                return False
            await self._apply(transaction, owner, plan)
            return True

        return await self._database.write(work, owner=self._user_id)

    async def _finish(self, transaction: Transaction, snapshot: _Snapshot) -> int:
        owner = await self._catch_up(transaction, snapshot)
        plan = snapshot.planner.plan()
        if owner is not None:
            await self._apply(transaction, owner, plan)
        return len(plan.steps)

    async def _load(self, transaction: Transaction) -> tuple[Owner | None, list[Candidate]]:
        owner = await find_owner(transaction, self._user_id)
        rows = [] if owner is None else await self._all(transaction, owner, store.CONTENTS)
        return owner, [_candidate(row) for row in rows]

    async def _catch_up(self, transaction: Transaction, snapshot: _Snapshot) -> Owner | None:
        owner = await load_owner(transaction, snapshot.user_no)
        rows = [] if owner is None else await self._all(transaction, owner, store.CHANGES)
        changes = {entry_no_of(key): change_no for key, change_no in rows}
        changed, gone = snapshot.planner.differences(changes)
        candidates: list[Candidate] = []
        if owner is not None:
            snapshot.change_no = owner.change_no
            for number in changed:
                params = {"user_no": owner.user_no, "entry_key": entry_key(owner.user_no, number)}
                candidates += [_candidate(row) for row in await transaction.fetch(store.CONTENT, params)]
        snapshot.planner.update(candidates, gone)
        return owner

    async def _all(self, transaction: Transaction, owner: Owner, statement: str) -> list[Row]:
        page = {**owner.keys, "now": self._now, "limit": _READ_AT_ONCE}
        found: list[Row] = []
        while rows := await transaction.fetch(statement, page):
            found += rows
            page["after"] = rows[-1][0]
        return found

    async def _apply(self, transaction: Transaction, owner: Owner, plan: Plan) -> None:
        writing = Writing(transaction, owner, self._nearest)
        numbers = {number for step in plan.steps for number in (step.survivor, step.other)}
        entries = {number: await load_entry(transaction, owner, number) for number in numbers}
        memories = {number: entry.memory for number, entry in entries.items()}
        for step in plan.steps:
            memories[step.survivor] = consolidated(memories[step.survivor], memories.pop(step.other))
        for number, entry in entries.items():
            memory = memories.get(number)
            if memory is None:
                await writing.remove(entry)
            else:
                await self._rewrite(writing, entry, memory, plan)
        await writing.finish()

    async def _rewrite(self, writing: Writing, entry: StoredEntry, memory: MemoryEntry, plan: Plan) -> None:
        new = plan.contents.get(entry.entry_no)
        content, digest = (memory.content, None) if new is None else (new.text, new.digest)
        memory = replace(memory, content=content, updated_at=self._now)
        await writing.rewrite(entry, memory, digest, summary_derived=entry.summary_derived)


def _candidate(row: Row) -> Candidate:
    return Candidate(entry_no_of(row[0]), *row[1:])
