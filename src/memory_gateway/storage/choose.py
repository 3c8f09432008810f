"""Which database the settings ask for."""

from memory_gateway.settings import Settings
from memory_gateway.storage.sqlite import SqliteDatabase

FILE_NAME = "memory-gateway.db"


def open_database(settings: Settings) -> SqliteDatabase:
    """The database in the data folder, which is made where it is missing, readable by its owner only."""
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    return SqliteDatabase(settings.data_dir / FILE_NAME)
