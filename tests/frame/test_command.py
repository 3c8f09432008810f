"""The page on the command tells of every command and every option."""

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from memory_gateway import cli
from memory_gateway.cli import main
from tests.frame.pages import DOCS


def _commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        for sub_name, sub_command in command.commands.items():
            yield from _commands(sub_command, f"{name} {sub_name}")


def test_every_command_and_option_is_on_the_page() -> None:
    page = (DOCS / "reference" / "command.md").read_text("utf-8")
    found = list(_commands(main, "memory-gateway"))
    assert {"memory-gateway serve", "memory-gateway demo", "memory-gateway user add"} <= {name for name, _ in found}
    for name, command in found:
        assert f"`{name}" in page, f"{name} is missing"
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert f"`{parameter.opts[0]}`" in page, f"{parameter.opts[0]} of {name} is missing"


def test_a_move_without_the_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "find_spec", lambda _: None)
    done = CliRunner().invoke(main, ["migrate"])
    assert (done.exit_code, done.output) == (1, "Error: asyncpg is missing; install memory-gateway[postgres]\n")
