"""Which database the settings ask for."""

from memory_gateway.settings import Settings
from memory_gateway.storage.port import Database
from memory_gateway.storage.sqlite import SqliteDatabase

FILE_NAME = "memory-gateway.db"


def open_database(settings: Settings) -> Database:
    """The server that ``database_url`` names, else a file in the data folder, which is made where it is missing."""
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    if settings.database_url is None:
        return SqliteDatabase(settings.data_dir / FILE_NAME)
    from memory_gateway.storage.postgres import PostgresDatabase  # noqa: PLC0415  # its driver takes a while to import

    return PostgresDatabase(settings.database_url, connections=settings.database_connections)
