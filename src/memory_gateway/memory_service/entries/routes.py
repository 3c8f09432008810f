"""``/api/v1/memories``."""

from typing import Annotated

from litestar import delete, get, post, put
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from litestar.types import ControllerRouterHandler

from memory_gateway.memory_service.entries.schemas import (
    Blank,
    Category,
    CategoryCounts,
    Consolidated,
    ConsolidateRequest,
    Decayed,
    DecayRequest,
    EntriesMatched,
    EntryChanges,
    EntryDeleted,
    EntryFound,
    EntryPage,
    EntryQuery,
    EntrySaved,
    EntryUpdated,
    NewEntry,
)
from memory_gateway.memory_service.entries.service import Entries
from memory_gateway.memory_service.users import check_user_id

_MOST = 2**31 - 1


@post("/memories")
async def create_memory(data: JSONBody[NewEntry], entries: NamedDependency[Entries]) -> EntrySaved:
    saved = await entries.create(data)
    return EntrySaved("saved", saved.memory, saved.merged, saved.similarity)


@get("/memories")
async def list_memories(
    entries: NamedDependency[Entries],
    *,
    user_id: FromQuery[str | None] = None,
    category: FromQuery[Category | Blank | None] = None,
    min_importance: Annotated[int, QueryParameter(ge=-_MOST, le=_MOST)] = 0,
    limit: Annotated[int, QueryParameter(ge=1, le=1000)] = 50,
    offset: Annotated[int, QueryParameter(ge=0, le=_MOST)] = 0,
) -> EntryPage:
    owner = check_user_id(user_id)
    return EntryPage(owner, *await entries.list(owner, category or None, min_importance, limit, offset))


@get("/memories/categories")
async def count_categories(entries: NamedDependency[Entries], user_id: FromQuery[str | None] = None) -> CategoryCounts:
    owner = check_user_id(user_id)
    return CategoryCounts(owner, await entries.categories(owner))


@post("/memories/query", status_code=200)
async def query_memories(data: JSONBody[EntryQuery], entries: NamedDependency[Entries]) -> EntriesMatched:
    owner = check_user_id(data.user_id)
    return EntriesMatched(owner, data.query_text or "", *await entries.query(data))


@post("/memories/consolidate", status_code=200)
async def consolidate_memories(data: JSONBody[ConsolidateRequest], entries: NamedDependency[Entries]) -> Consolidated:
    owner = check_user_id(data.user_id)
    return Consolidated("consolidated", owner, await entries.consolidate(owner))


@post("/memories/decay", status_code=200)
async def decay_memories(data: JSONBody[DecayRequest], entries: NamedDependency[Entries]) -> Decayed:
    owner = check_user_id(data.user_id)
    return Decayed("decayed", owner, *await entries.decay(owner, dry_run=data.dry_run or False))


@get("/memories/{memory_id:str}")
async def get_memory(memory_id: FromPath[str], entries: NamedDependency[Entries]) -> EntryFound:
    return EntryFound(await entries.get(memory_id))


@put("/memories/{memory_id:str}")
async def update_memory(
    memory_id: FromPath[str], data: JSONBody[EntryChanges], entries: NamedDependency[Entries]
) -> EntryUpdated:
    await entries.update(memory_id, data)
    return EntryUpdated("updated", memory_id)


@delete("/memories/{memory_id:str}", status_code=200)
async def delete_memory(memory_id: FromPath[str], entries: NamedDependency[Entries]) -> EntryDeleted:
    await entries.delete(memory_id)
    return EntryDeleted("deleted", memory_id)


ROUTES: list[ControllerRouterHandler] = [
    create_memory,
    list_memories,
    count_categories,
    query_memories,
    consolidate_memories,
    decay_memories,
    get_memory,
    update_memory,
    delete_memory,
]
