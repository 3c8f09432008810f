"""What is said to Citus, and what a cluster needs of the schema, as PostgreSQL's own catalogue has it."""

import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import asyncpg
import pytest

from memory_gateway.storage.distribution import DISTRIBUTED_BY, GROUPS, ON_EVERY_NODE
from memory_gateway.storage.migrate import migrations
from tests.fakes.databases import TEMPLATE, database_url
from tests.fakes.postgres import running_server

UNIQUE_INDEXES = """
SELECT t.relname, i.relname, array_agg(a.attname::TEXT)
FROM pg_index x JOIN pg_class t ON t.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid
JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = ANY (x.indkey)
WHERE x.indisunique AND t.relnamespace = 'public'::regnamespace GROUP BY t.relname, i.relname
"""
COLUMNS = """
SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns WHERE table_schema = 'public'
"""
CALL = re.compile(r"SELECT create_(distributed|reference)_table\('(\w+)'(?:, '(\w+)', colocate_with => '(\w+)')?\);")


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    with running_server() as server:
        yield server


async def catalogue(server: Any, sql: str) -> list[tuple[Any, ...]]:
    connection = await asyncpg.connect(database_url(server.get_uri(), TEMPLATE))
    try:
        return [tuple(row) for row in await connection.fetch(sql)]
    finally:
        await connection.close()


async def test_every_table_says_how_it_lies_on_the_nodes(server: Any) -> None:
    tables = {table for table, *_ in await catalogue(server, COLUMNS)}
    assert tables == {*DISTRIBUTED_BY, *ON_EVERY_NODE}
    assert not DISTRIBUTED_BY.keys() & set(ON_EVERY_NODE)
    assert len(DISTRIBUTED_BY) == sum(len(group.tables) for group in GROUPS)


async def test_every_key_and_every_unique_index_holds_the_column_that_distributes(server: Any) -> None:
    indexes = await catalogue(server, UNIQUE_INDEXES)
    assert {table for table, *_ in indexes} == {*DISTRIBUTED_BY, *ON_EVERY_NODE}, "a table has no key"
    without = [name for table, name, columns in indexes if DISTRIBUTED_BY.get(table, columns[0]) not in columns]
    assert without == []


async def test_the_columns_of_a_group_are_of_one_type_and_never_empty(server: Any) -> None:
    columns = {(table, column): rest for table, column, *rest in await catalogue(server, COLUMNS)}
    kinds = {(group.column, *columns[table, group.column]) for group in GROUPS for table in group.tables}
    texts, numbers = ("user_id", "folded_id", "session_id", "name"), ("space_no", "user_no", "shard_key")
    assert kinds == {(column, "text", "NO") for column in texts} | {(column, "bigint", "NO") for column in numbers}


def test_the_script_for_citus_names_every_table_once_in_its_group() -> None:
    script = files("memory_gateway.storage").joinpath("citus.sql").read_text("utf-8")
    statements = [line for line in script.splitlines() if line and not line.startswith("--")]
    calls = [match.groups() for match in map(CALL.fullmatch, statements) if match]
    assert len(calls) == len(statements), "a statement that this test cannot read"
    wanted: list[tuple[str | None, ...]] = []
    for group in GROUPS:
        first, *others = group.tables
        wanted.append(("distributed", first, group.column, "none"))
        wanted += [("distributed", table, group.column, first) for table in others]
    assert calls == wanted + [("reference", table, None, None) for table in ON_EVERY_NODE]


def test_both_databases_have_come_to_the_same_migration() -> None:
    assert migrations("migrations")[-1].number == migrations("migrations_postgres")[-1].number
