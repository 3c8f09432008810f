"""List, get and create of the Memory-Service on the usual stack: FastAPI, Pydantic, SQLAlchemy async over aiosqlite.

Same paths, same checks, same JSON, same durability; a database of its own with the index that the list needs. It does
less: its create looks for nothing similar, and its get counts no access. It is written as the guides of these libraries
write it, with a pooled engine and the database pragmas that the service uses.
"""

import os
import re
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import Depends, FastAPI, HTTPException, Query
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import JSON, Index, event, func, select
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.pool import ConnectionPoolEntry

Category = Literal["user_preference", "personal_info", "conversation", "knowledge", "event", "task", "relationship"]
Source = Literal["conversation", "manual", "merged", "consolidated"]
UserId = Annotated[str, Field(min_length=1, max_length=64)]
FIRST_SENTENCE = re.compile(r"[^.!?。！？\n]{1,100}[.!?。！？]?")


class Base(DeclarativeBase):
    pass


class Entry(Base):
    __tablename__ = "memory_entries"

    id: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[str]
    content: Mapped[str]
    summary: Mapped[str]
    category: Mapped[str]
    priority: Mapped[int]
    importance: Mapped[int]
    keywords: Mapped[list[str]] = mapped_column(JSON)
    session_id: Mapped[str]
    source: Mapped[str]
    access_count: Mapped[int]
    last_access: Mapped[str]
    created_at: Mapped[str]
    updated_at: Mapped[str]
    expires_at: Mapped[str | None]

    __table_args__ = (Index("memory_entries_order", "user_id", "importance", "priority", "created_at", "id"),)


class EntryIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    user_id: UserId
    content: Annotated[str, Field(min_length=1)]
    summary: str = ""
    category: Category = "knowledge"
    priority: int = 1
    importance: int = 5
    keywords: list[str] = []
    session_id: str = ""
    source: Source = "manual"


class EntryOut(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    id: str
    user_id: str
    content: str
    summary: str
    category: Category
    priority: int
    importance: int
    keywords: list[str]
    session_id: str
    source: Source
    access_count: int
    last_access: str
    created_at: str
    updated_at: str
    expires_at: str | None = None


class SavedOut(BaseModel):
    status: Literal["saved"]
    memory: EntryOut
    merged: bool


class FoundOut(BaseModel):
    memory: EntryOut


class PageOut(BaseModel):
    user_id: str
    memories: list[EntryOut]
    total: int


engine = create_async_engine(f"sqlite+aiosqlite:///{os.environ.get('TWIN_DATABASE', ':memory:')}", pool_size=16)
new_session = async_sessionmaker(engine, expire_on_commit=False)


@event.listens_for(engine.sync_engine, "connect")
def _same_pragmas(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    cursor = connection.cursor()
    for pragma in (
        "journal_mode = wal",
        "synchronous = full",
        "busy_timeout = 30000",
        "cache_size = -8000",
        "mmap_size = 268435456",
        "wal_autocheckpoint = 4000",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


@asynccontextmanager
async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    yield
    await engine.dispose()


async def get_session() -> AsyncIterator[AsyncSession]:
    async with new_session() as session:
        yield session


Session = Annotated[AsyncSession, Depends(get_session)]
app = FastAPI(lifespan=lifespan)


@app.post("/api/v1/memories", status_code=201, response_model_exclude_none=True)
async def create_memory(new: EntryIn, session: Session) -> SavedOut:
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    first_sentence = FIRST_SENTENCE.match(new.content)
    entry = Entry(
        **new.model_dump(exclude={"summary", "priority", "importance", "keywords"}),
        id=str(uuid.uuid4()),
        summary=new.summary or (first_sentence[0] if first_sentence else ""),
        priority=min(10, max(0, new.priority)),
        importance=min(10, max(1, new.importance)),
        keywords=list(dict.fromkeys(new.keywords)),
        access_count=0,
        last_access=now,
        created_at=now,
        updated_at=now,
    )
    session.add(entry)
    await session.commit()
    return SavedOut(status="saved", memory=EntryOut.model_validate(entry), merged=False)


@app.get("/api/v1/memories", response_model_exclude_none=True)
async def list_memories(
    session: Session,
    user_id: UserId,
    category: Category | None = None,
    min_importance: int = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    offset: Annotated[int, Query(ge=0)] = 0,
) -> PageOut:
    matching = [Entry.user_id == user_id, Entry.importance >= min_importance]
    if category is not None:
        matching.append(Entry.category == category)
    total = await session.scalar(select(func.count()).select_from(Entry).where(*matching))
    newest = (Entry.importance.desc(), Entry.priority.desc(), Entry.created_at.desc(), Entry.id.desc())
    rows = await session.scalars(select(Entry).where(*matching).order_by(*newest).limit(limit).offset(offset))
    return PageOut(user_id=user_id, memories=[EntryOut.model_validate(row) for row in rows], total=total or 0)


@app.get("/api/v1/memories/{memory_id}", response_model_exclude_none=True)
async def get_memory(memory_id: str, session: Session) -> FoundOut:
    entry = await session.get(Entry, memory_id)
    if entry is None:
        raise HTTPException(404, "记忆不存在")
    return FoundOut(memory=EntryOut.model_validate(entry))
