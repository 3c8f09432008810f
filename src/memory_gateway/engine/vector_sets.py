"""The vectors of a space lie in sets, one a model. A new model's set is filled while the former one is searched."""

from collections.abc import Callable
from typing import Literal

from msgspec import Struct, structs

from memory_gateway.engine import store
from memory_gateway.engine.held_vectors import named_model
from memory_gateway.storage.port import Database, Transaction


class VectorSets(Struct, frozen=True):
    """What a space says of its vectors.

    ``count`` of its first turns have a vector of ``model``, in the set ``set_no``. There is a former model as long as
    more turns have a vector of that: its set is the one that is searched. A set that was ever searched keeps its number
    to itself, so what is held of it in memory cannot be taken for another.
    """

    model: str | None
    count: int
    set_no: int
    former_model: str | None = None
    former_count: int = 0
    former_set: int = 0

    def begun_anew(self, model: str) -> "VectorSets":
        """With an empty set of this model beside the one that is searched; or back to that one."""
        if model == self.former_model:
            return VectorSets(model, self.former_count, self.former_set)
        if self.former_model is not None:
            return structs.replace(self, model=model, count=0)
        if self.count and self.model is not None and named_model(self.model) is not None:
            return VectorSets(model, 0, self.set_no + 1, self.model, self.count, self.set_no)
        return VectorSets(model, 0, self.set_no + 1)


async def begin_anew(transaction: Transaction, space_no: int, model: str) -> None:
    """Make the space's vectors anew by this model, as spaces name it. Nothing for one that has them, or was erased."""
    row = await transaction.fetch_one(store.VECTOR_SETS, {"space_no": space_no})
    if row is None or row[0] in {None, model}:
        return
    before = VectorSets(*row)
    after = before.begun_anew(model)
    found = {"space_no": space_no, "expected_set": before.set_no, "expected_count": before.count}
    if await transaction.execute(store.REPLACE_SETS, {**structs.asdict(after), **found}):
        kept = after.set_no if after.former_model is None else after.former_set
        await transaction.execute(store.KEEP_SET, {"space_no": space_no, "set_no": kept})


async def drop_former(transaction: Transaction, space_no: int, set_no: int) -> None:
    """The set that is being filled now knows as much."""
    await transaction.execute(store.FORGET_FORMER, {"space_no": space_no})
    await transaction.execute(store.KEEP_SET, {"space_no": space_no, "set_no": set_no})


class Reindexing(Struct, frozen=True):
    """How far vectors of a changed model are: ``done`` turns of all. Until then, former ones are searched, or words."""

    done: int
    of: int
    searched_by: Literal["former_vectors", "words"]


async def reindexed(database: Database, model: str, can_ask: Callable[[str], bool]) -> Reindexing | None:
    """None where no vectors are of another model than this, as spaces name it."""
    if not (await database.fetch(store.ANY_FORMER) or await database.fetch(store.OUTDATED_SPACES, {"model": model})):
        return None
    rows = await database.read(lambda transaction: transaction.fetch(store.REINDEXED, {"model": model}))
    askable = all(can_ask(served) for served, _, _ in rows if served is not None)
    return Reindexing(
        done=sum(done for _, _, done in rows),
        of=sum(turns for _, turns, _ in rows),
        searched_by="former_vectors" if askable else "words",
    )
