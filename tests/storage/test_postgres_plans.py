"""How PostgreSQL serves each statement: by an index, whatever the values, where hundreds of users lie in a table."""

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any

import asyncpg
import pytest

from memory_gateway.storage.dialect import for_postgres
from memory_gateway.storage.distribution import DISTRIBUTED_BY
from memory_gateway.storage.lists import with_list
from tests.fakes.databases import TEMPLATE, database_url, on_server
from tests.fakes.postgres import running_server
from tests.frame.sql_owners import columns_of
from tests.frame.test_sql import ACROSS_SHARDS, statements

ROWS, USERS = 8000, 400
COLUMNS = """
SELECT column_name, data_type, is_nullable = 'YES' FROM information_schema.columns
WHERE table_schema = 'public' AND table_name = $1
"""
KEY = """
SELECT count(*) FROM pg_index x JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = ANY (x.indkey)
WHERE x.indisprimary AND x.indrelid = $1::TEXT::regclass
"""
FIRST_COLUMNS = "SELECT relname, pg_get_indexdef(oid, 1, true) FROM pg_class WHERE relkind = 'i'"
LIST = re.compile(r"IN \(:(\w+)\)")

# What reads a whole table, and why. Nothing else may.
WHOLE_TABLES = {
    "engine.REINDEXED": "counts all there is, for health while the embedding model changes",
    "gateway.attachments.BACKFILL": "once at a start: every resource is compared with its attachment",
    "memory_service.thinking.STATS_OF_ALL": "counts all there is",
    "upstream.COUNT_WAITING": "for the operator: counts what waits, which is little or the upstream is away",
    "upstream.DUE": "what waits is little or the upstream is away; here all of the table waits",
}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Of a database with some rows of every user in every table."""
    with running_server() as server:
        asyncio.run(on_server(server.get_uri(), f"CREATE DATABASE full_tables TEMPLATE {TEMPLATE}"))
        url = database_url(server.get_uri(), "full_tables")
        asyncio.run(fill(url))
        yield url


@pytest.fixture(scope="module")
def first_columns(url: str) -> dict[str, str]:
    """By the name of the index."""

    async def read() -> dict[str, str]:
        connection = await asyncpg.connect(url)
        try:
            return dict(map(tuple, await connection.fetch(FIRST_COLUMNS)))
        finally:
            await connection.close()

    return asyncio.run(read())


async def fill(url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        for table, column in DISTRIBUTED_BY.items():
            await connection.execute(await filling(connection, table, column))
        await connection.execute("ANALYZE")
    finally:
        await connection.close()


async def filling(connection: Any, table: str, distributed_by: str) -> str:
    """One row after the other to each user, or, where a user has only one, a row to each of many users."""
    users = USERS if await connection.fetchval(KEY, table) > 1 else ROWS
    values = {}
    for name, kind, may_be_empty in await connection.fetch(COLUMNS, table):
        if name == distributed_by:
            number = f"n % {users}"
        elif may_be_empty:
            number = "NULLIF(n, n)"
        else:
            number = f"n / {users}"
        texts = {"bigint": number, "bytea": "'\\x00'::bytea", "double precision": "n"}
        values[name] = texts.get(kind, f"'{name}-' || {number}")
    return (
        f"INSERT INTO {table} ({', '.join(values)}) SELECT {', '.join(values.values())} "
        f"FROM generate_series(1, {ROWS}) AS numbers (n)"
    )


async def scans_of(url: str, text: str) -> list[dict[str, Any]]:
    """How the plan for all values reads tables. Lists have some members."""
    for name in LIST.findall(text):
        text, _ = with_list(text, name, ["one", "two", "three"])
    sent, names = for_postgres(text)
    values = f"({', '.join(['NULL'] * len(names))})" if names else ""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("SET plan_cache_mode = force_generic_plan")
        await connection.execute(f"PREPARE statement AS {sent}")
        plan = await connection.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE statement {values}")
    finally:
        await connection.close()
    return [node for node in nodes(json.loads(plan)[0]["Plan"]) if "Scan" in node["Node Type"]]


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", ()):
        yield from nodes(inner)


@pytest.mark.parametrize(("name", "text"), list(statements()))
async def test_a_statement_is_served_by_an_index(url: str, name: str, text: str) -> None:
    scans = await scans_of(url, text)
    assert any(scan["Node Type"] == "Seq Scan" for scan in scans) == (name in WHOLE_TABLES), scans


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, text in statements() if name not in ACROSS_SHARDS])
async def test_a_statement_on_one_user_looks_at_that_users_part_of_the_index(
    url: str, first_columns: dict[str, str], name: str, text: str
) -> None:
    """Not at all of it: an index that does not begin with what is asked for is walked from end to end."""
    (column,) = columns_of(text)
    for scan in await scans_of(url, text):
        if "Index Name" in scan:
            assert f"{column} = " in scan["Index Cond"], scan
            assert first_columns[scan["Index Name"]] in scan["Index Cond"], scan


async def test_a_table_read_as_a_whole_is_noticed(url: str) -> None:
    (scan,) = await scans_of(url, "SELECT id FROM outbox WHERE tries = :tries")
    assert (scan["Node Type"], scan["Relation Name"]) == ("Seq Scan", "outbox")


def test_the_list_names_only_statements_that_exist() -> None:
    assert WHOLE_TABLES.keys() <= {name for name, _ in statements()}
