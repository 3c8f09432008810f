"""Every write says whose it is, or that nobody's is meant: forgotten, it would race on PostgreSQL."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import memory_gateway

PACKAGE = Path(memory_gateway.__file__).parent


def writes(source: str) -> Iterator[ast.Call]:
    """The calls of ``write`` on something that is called a database."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(value=target, attr="write")) if "database" in ast.unparse(target).lower():
                yield node


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_write_names_an_owner(path: Path) -> None:
    calls = list(writes(path.read_text("utf-8")))
    assert [call.lineno for call in calls if "owner" not in {word.arg for word in call.keywords}] == []


def test_a_write_that_names_none_is_seen() -> None:
    assert len(list(writes("await self._database.write(work)\nawait file.write(b'')"))) == 1
