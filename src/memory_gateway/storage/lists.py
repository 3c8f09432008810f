"""Lists in statements: a database takes one value a parameter."""

from collections.abc import Sequence
from typing import Any


def with_list(sql: str, name: str, values: Sequence[str] | Sequence[int]) -> tuple[str, dict[str, Any]]:
    """The statement with ``(:name)`` spelled out for so many values, and those values as its parameters."""
    params = {f"{name}_{index}": value for index, value in enumerate(values)}
    return sql.replace(f"(:{name})", f"({', '.join(f':{key}' for key in params)})"), params
