"""The same ``GET /resources`` on the usual stack: FastAPI, Pydantic, SQLAlchemy async over aiosqlite.

It reads the gateway's own database, checks the same keys in the same way and gives the same JSON. It is written as the
guides of these libraries write it, with a pooled engine and the database pragmas that the gateway uses.
"""

import base64
import hashlib
import hmac
import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Depends, FastAPI, Header, HTTPException, Query
from pydantic import BaseModel, ConfigDict
from sqlalchemy import event, select, tuple_
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.pool import ConnectionPoolEntry


class Base(DeclarativeBase):
    pass


class User(Base):
    __tablename__ = "users"

    user_id: Mapped[str] = mapped_column(primary_key=True)
    erased_at: Mapped[str | None]


class UserKey(Base):
    __tablename__ = "user_keys"

    user_id: Mapped[str] = mapped_column(primary_key=True)
    key_hash: Mapped[str] = mapped_column(primary_key=True)
    stops_at: Mapped[str | None]


class UserResource(Base):
    __tablename__ = "user_resources"

    user_id: Mapped[str] = mapped_column(primary_key=True)
    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    title: Mapped[str | None]
    content_type: Mapped[str]
    mime_type: Mapped[str]
    size: Mapped[int]
    sha256: Mapped[str]
    app_id: Mapped[str]
    project_id: Mapped[str]
    session_id: Mapped[str]
    status: Mapped[str]
    error: Mapped[str | None]
    created_at: Mapped[str]
    deleted_at: Mapped[str | None]

    @property
    def uri(self) -> str:
        return f"resource://{self.id}"


class ResourceOut(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    id: str
    uri: str
    name: str
    title: str | None
    content_type: str
    mime_type: str
    size: int
    sha256: str
    app_id: str
    project_id: str
    session_id: str
    status: str
    error: str | None
    created_at: str
    deleted_at: str | None


class PageOut(BaseModel):
    resources: list[ResourceOut]
    next_cursor: str | None


engine = create_async_engine(f"sqlite+aiosqlite:///{os.environ.get('TWIN_DATABASE', ':memory:')}", pool_size=16)
new_session = async_sessionmaker(engine, expire_on_commit=False)
secret = os.environ.get("TWIN_KEY_SECRET", "").encode()
app = FastAPI()


@event.listens_for(engine.sync_engine, "connect")
def _same_pragmas(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    cursor = connection.cursor()
    for pragma in ("journal_mode = wal", "cache_size = -8000", "mmap_size = 268435456"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


async def get_session() -> AsyncIterator[AsyncSession]:
    async with new_session() as session:
        yield session


Session = Annotated[AsyncSession, Depends(get_session)]


async def get_user(
    session: Session, x_user_id: Annotated[str, Header()] = "", x_user_key: Annotated[str, Header()] = ""
) -> str:
    presented = hmac.digest(secret, x_user_key.encode(), hashlib.sha256).hex()
    statement = (
        select(UserKey.key_hash, UserKey.stops_at, User.erased_at)
        .join(User, User.user_id == UserKey.user_id)
        .where(UserKey.user_id == x_user_id, UserKey.key_hash == presented)
    )
    key = (await session.execute(statement)).one_or_none()
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    if key is None or key.erased_at is not None or (key.stops_at is not None and key.stops_at <= now):
        raise HTTPException(401, "user id and user key do not match")
    if not hmac.compare_digest(key.key_hash, presented):
        raise HTTPException(401, "user id and user key do not match")
    return x_user_id


@app.get("/resources")
async def list_resources(
    session: Session,
    user_id: Annotated[str, Depends(get_user)],
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
    cursor: str | None = None,
    app_id: str | None = None,
    project_id: str | None = None,
) -> PageOut:
    statement = (
        select(UserResource)
        .where(UserResource.user_id == user_id, UserResource.deleted_at.is_(None))
        .order_by(UserResource.created_at.desc(), UserResource.id.desc())
        .limit(limit + 1)
    )
    if cursor is not None:
        statement = statement.where(tuple_(UserResource.created_at, UserResource.id) < tuple_(*_position(cursor)))
    if app_id is not None:
        statement = statement.where(UserResource.app_id == app_id)
    if project_id is not None:
        statement = statement.where(UserResource.project_id == project_id)
    rows = (await session.scalars(statement)).all()
    page = [ResourceOut.model_validate(row) for row in rows[:limit]]
    return PageOut(resources=page, next_cursor=_cursor_of(page[-1]) if len(rows) > limit else None)


def _cursor_of(resource: ResourceOut) -> str:
    return base64.urlsafe_b64encode(f"{resource.created_at} {resource.id}".encode()).decode().rstrip("=")


def _position(cursor: str) -> tuple[str, str]:
    created_at, _, resource_id = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode().partition(" ")
    return created_at, resource_id
