"""``memory-gateway migrate``: what a person sees of a move from a data folder to PostgreSQL."""

import sys

import click

from memory_gateway.blobs.choose import STORAGE_FOLDER
from memory_gateway.kit.clock import system_clock
from memory_gateway.server import KEY_SECRET_FILE
from memory_gateway.settings import Settings, SettingsError
from memory_gateway.storage.choose import FILE_NAME
from memory_gateway.storage.moving.columns import MoveRefused
from memory_gateway.storage.moving.move import Count, Move, open_move


async def move_data(settings: Settings) -> bool:
    """Whether all rows are there. `SettingsError` where a move cannot begin or go on."""
    if settings.database_url is None:
        raise SettingsError("database_url is not set: name the PostgreSQL database that everything goes to")
    _check_key_secret(settings)
    path = settings.data_dir.resolve() / FILE_NAME
    try:
        async with open_move(path, settings.database_url, system_clock) as move:
            if move.finished_at is not None:
                return await _say_when(move)
            return await _run(move, settings)
    except MoveRefused as error:
        raise SettingsError(str(error)) from error


def _check_key_secret(settings: Settings) -> None:
    """With another one no key of a user would be taken any more."""
    path = settings.data_dir.resolve() / KEY_SECRET_FILE
    if path.is_file() and path.read_bytes().strip() != (settings.key_secret or "").encode():
        raise SettingsError(f"key_secret is not the content of {path}, which all user keys of this folder need")


async def _run(move: Move, settings: Settings) -> bool:
    with click.progressbar(length=move.rows, label="rows moved", file=sys.stderr) as bar:
        async for rows in move.batches():
            bar.update(rows)
    counts = await move.finish()
    complete = _show(counts, "rows in target")
    if not complete:
        click.echo("Error: the counts differ: somebody else wrote to the target", err=True)
        return False
    click.echo(f"{sum(count.source for count in counts)} rows, all of them, are in the database.")
    click.echo("Serve it with the database_url and the key_secret of this command.")
    if settings.blob_url is None:
        click.echo(
            f"The users' files stay in {settings.data_dir.resolve() / STORAGE_FOLDER}, and rows name them by this "
            "path: each server needs this folder, at this path, as its data_dir."
        )
    return True


async def _say_when(move: Move) -> bool:
    same = _show(await move.moved(), "rows moved")
    click.echo(f"Everything was moved at {move.finished_at}; nothing was done now.")
    if not same:
        click.echo("Error: the data folder was written to after it was moved, and these rows were not", err=True)
    return same


def _show(counts: list[Count], heading: str) -> bool:
    """A line for each table; whether all counts are the same."""
    width = max(len(count.table) for count in counts)
    click.echo(f"{'table':{width}}  {'rows in source':>14}  {heading:>14}")
    for count in counts:
        mark = "" if count.source == count.target else "  differs"
        click.echo(f"{count.table:{width}}  {count.source:14}  {count.target:14}{mark}")
    return all(count.source == count.target for count in counts)
