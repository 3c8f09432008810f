"""Which store the settings ask for. A bucket's client library is loaded only where there is a bucket."""

from urllib.parse import urlsplit

from memory_gateway.blobs.folder import FolderBlobs
from memory_gateway.blobs.port import BlobStore
from memory_gateway.settings import Settings

STORAGE_FOLDER = "storage"
TEMPORARY_FOLDER = "tmp"


def open_blobs(settings: Settings) -> BlobStore:
    """The bucket of ``blob_url``, else a folder of the data folder, which is made where it is missing."""
    storage_root, temporary_root = settings.data_dir / STORAGE_FOLDER, settings.data_dir / TEMPORARY_FOLDER
    if not settings.blob_url:
        storage_root.mkdir(mode=0o700, parents=True, exist_ok=True)
        return FolderBlobs(storage_root)
    from memory_gateway.blobs.bucket import open_bucket  # noqa: PLC0415 - see above

    temporary_root.mkdir(mode=0o700, parents=True, exist_ok=True)
    return open_bucket(settings, temporary_root)


async def check_blobs(settings: Settings) -> None:
    """At start: `SettingsError` where the bucket says that a setting is wrong."""
    if settings.blob_url:
        from memory_gateway.blobs.bucket import check_bucket, open_bucket  # noqa: PLC0415

        bucket = urlsplit(settings.blob_url).netloc
        await check_bucket(open_bucket(settings, settings.data_dir / TEMPORARY_FOLDER), bucket)
