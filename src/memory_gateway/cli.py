"""The command ``memory-gateway``. Flags beat environment, which beats the settings file, which beats defaults."""

import asyncio
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import click

from memory_gateway import __version__
from memory_gateway.kit.errors import MemoryGatewayError, NotFound
from memory_gateway.settings import Settings, SettingsError, load_settings

Command = TypeVar("Command", bound=Callable[..., Any])

_SERVE_FLAGS = ("host", "gateway_port", "service_port", "workers", "upstream", "upstream_url", "embedder", "log_level")


def _data_flags(command: Command) -> Command:
    command = click.option("--data-dir", type=click.Path(path_type=Path), help="Folder of all data. [default: ./data]")(
        command
    )
    return click.option(
        "--config",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Settings file. [default: memory-gateway.toml]",
    )(command)


def _serve_flags(command: Command) -> Command:
    for name in reversed(_SERVE_FLAGS):
        command = click.option(f"--{name.replace('_', '-')}", help=f"Setting {name}.")(command)
    return command


def _settings(config: Path | None, **flags: Any) -> Settings:
    try:
        return load_settings(flags, file=config)
    except SettingsError as error:
        raise click.ClickException(str(error)) from error


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Self-hosted memory for many users of agents and chat applications."""


@main.command()
@_data_flags
@_serve_flags
@click.option("--only", type=click.Choice(["gateway", "service"]), help="One face alone. [default: both]")
def serve(config: Path | None, data_dir: Path | None, only: str | None, **flags: str | None) -> None:
    """Serve the Memory Gateway and the Memory-Service."""
    from memory_gateway.serve import serve as run  # noqa: PLC0415 - as above
    from memory_gateway.server import FACES  # noqa: PLC0415 - the other commands start quicker without it

    try:
        run(_settings(config, data_dir=data_dir, **flags), [face for face in FACES if only in {None, face}])
    except (SettingsError, MemoryGatewayError, OSError) as error:
        raise click.ClickException(str(error)) from error


@main.command()
def demo() -> None:
    """Start a server on a temporary folder and tell the whole story: files, conversations, search, edits."""
    from memory_gateway.demo.story import run  # noqa: PLC0415 - needed by this command alone

    sys.exit(run())


@main.command("migrate")
@_data_flags
@click.option("--database-url", help="Setting database_url: where everything goes.")
def move_to_postgres(config: Path | None, data_dir: Path | None, database_url: str | None) -> None:
    """Move the SQLite database of a data folder to PostgreSQL; run it again when it was interrupted."""
    if find_spec("asyncpg") is None:
        raise click.ClickException("asyncpg is missing; install memory-gateway[postgres]")
    from memory_gateway.moving import move_data  # noqa: PLC0415 - see serve

    try:
        complete = asyncio.run(move_data(_settings(config, data_dir=data_dir, database_url=database_url)))
    except (SettingsError, OSError) as error:
        raise click.ClickException(str(error)) from error
    sys.exit(0 if complete else 1)


@main.group()
def user() -> None:
    """Users and their keys, straight in the database."""


@user.command("add")
@click.argument("user_id")
@_data_flags
def add_user(user_id: str, config: Path | None, data_dir: Path | None) -> None:
    """Register a user and print the key, which is shown only once."""
    new_user = _with_accounts(_settings(config, data_dir=data_dir), lambda accounts: accounts.create(user_id))
    click.echo(new_user.user_key)


@user.command("rotate")
@click.argument("user_id")
@click.option("--grace-seconds", type=click.IntRange(0, 604_800), default=0, help="How long old keys go on.")
@_data_flags
def rotate_key(user_id: str, grace_seconds: int, config: Path | None, data_dir: Path | None) -> None:
    """Give a user a new key and print it."""
    new_user = _with_accounts(
        _settings(config, data_dir=data_dir), lambda accounts: accounts.rotate(user_id, grace_seconds)
    )
    click.echo(new_user.user_key)


@user.command("list")
@_data_flags
def list_users(config: Path | None, data_dir: Path | None) -> None:
    """Print every account: id, time of registration, time of erasure."""
    for account in _with_accounts(_settings(config, data_dir=data_dir), lambda accounts: accounts.list_users()):
        click.echo(f"{account.user_id}\t{account.created_at}\t{account.erased_at or ''}")


def _with_accounts(settings: Settings, use: Callable[[Any], Any]) -> Any:
    from memory_gateway.server import open_accounts  # noqa: PLC0415 - see serve

    async def run() -> Any:
        async with open_accounts(settings) as accounts:
            return await use(accounts)

    try:
        return asyncio.run(run())
    except NotFound as error:
        raise click.ClickException("no such user") from error
    except (SettingsError, MemoryGatewayError, OSError) as error:
        raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    main()
