"""Reads a statement as a planner does: which tables it touches, and whether it says on which shard their rows lie."""

from collections.abc import Iterator
from typing import NamedTuple

import sqlglot
from sqlglot import exp

from memory_gateway.storage.dialect import for_postgres
from memory_gateway.storage.distribution import DISTRIBUTED_BY, ON_EVERY_NODE

Place = tuple[str, str]
"""A table by the name it has in its query, and a column."""


class Touched(NamedTuple):
    """A table that a query reads or writes; whether the query compares its column with one value."""

    table: str
    is_bound: bool


def unbound_tables(sql: str) -> list[str]:
    """The tables of users that the statement touches without saying whose rows. `LookupError` for an unknown table."""
    return [touched.table for touched in _touched(_parsed(sql)) if not touched.is_bound]


def columns_of(sql: str) -> set[str]:
    """By what the tables that the statement touches are distributed."""
    return {DISTRIBUTED_BY[touched.table] for touched in _touched(_parsed(sql))}


def _parsed(sql: str) -> exp.Expr:
    (statement,) = sqlglot.parse(for_postgres(sql).text, dialect="postgres")
    assert statement is not None
    return statement


def _touched(statement: exp.Expr) -> Iterator[Touched]:
    names = {with_.alias for with_ in statement.find_all(exp.CTE)}
    for query in statement.find_all(exp.Select, exp.Update, exp.Delete, exp.Insert):
        bound = _bound_by_insert(query) if isinstance(query, exp.Insert) else _bound(query)
        for alias, table in _tables(query).items():
            if table not in ON_EVERY_NODE and table not in names:
                if table not in DISTRIBUTED_BY:
                    raise LookupError(f"{table} is not in the table of distribution columns")
                yield Touched(table, (alias, DISTRIBUTED_BY[table]) in bound)


def _tables(query: exp.Expr) -> dict[str, str]:
    """The query's own tables, by the names they have there; not those of a query within it."""
    from_ = query.args.get("from_")
    sources = [query.this] if isinstance(query, exp.Update | exp.Delete | exp.Insert) else [from_ and from_.this]
    sources += [join.this for join in query.args.get("joins") or ()]
    if isinstance(query, exp.Insert) and isinstance(query.this, exp.Schema):
        sources[0] = query.this.this
    return {source.alias_or_name: source.name for source in sources if isinstance(source, exp.Table)}


def _bound(query: exp.Expr) -> set[Place]:
    """The columns that are equal to a parameter, directly or through other columns."""
    outer = query.find_ancestor(exp.Select, exp.Update, exp.Delete)
    bound = set() if outer is None else _bound(outer)
    equal = [(_place(each.this, query), _place(each.expression, query)) for each in _equalities(query)]
    for _ in range(len(equal) + 1):
        for one, other in (*equal, *((other, one) for one, other in equal)):
            if isinstance(one, tuple) and (other == "a parameter" or other in bound):
                bound.add(one)
    return bound


def _equalities(query: exp.Expr) -> Iterator[exp.EQ]:
    """Those that hold for every row: alternatives do not count."""
    where = query.args.get("where")
    conditions = [where.this] if where else []
    conditions += [join.args["on"] for join in query.args.get("joins") or () if join.args.get("on")]
    while conditions:
        condition = conditions.pop().unnest()
        if isinstance(condition, exp.And):
            conditions += [condition.left, condition.right]
        elif isinstance(condition, exp.EQ):
            yield condition


def _place(side: exp.Expr, query: exp.Expr) -> Place | str | None:
    if isinstance(side, exp.Parameter):
        return "a parameter"
    if not isinstance(side, exp.Column):
        return None
    tables = list(_tables(query))
    alias = side.table or (tables[0] if len(tables) == 1 else "")  # without its table's name it may be of any of many
    return alias, side.name


def _bound_by_insert(query: exp.Insert) -> set[Place]:
    """The columns that are given one value: a parameter, or what a select has bound."""
    assert isinstance(query.this, exp.Schema), "an insert names its columns"
    alias = query.this.this.name
    values = _values(query)
    columns = [column.name for column in query.this.expressions]
    assert len(columns) == len(values)
    source = query.expression
    bound = _bound(source) if isinstance(source, exp.Select) else set()
    return {
        (alias, column)
        for column, value in zip(columns, values, strict=True)
        if isinstance(value, exp.Parameter) or (isinstance(source, exp.Select) and _place(value, source) in bound)
    }


def _values(query: exp.Insert) -> list[exp.Expr]:
    source = query.expression
    if isinstance(source, exp.Select):
        return list(source.expressions)
    assert isinstance(source, exp.Values)
    (row,) = source.expressions
    return list(row.expressions)
