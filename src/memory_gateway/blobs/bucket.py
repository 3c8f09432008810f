"""The bucket that the settings name: how it is spoken to, and which setting is wrong where it refuses at start."""

import logging
import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from obstore.exceptions import BaseError
from obstore.store import S3Store

from memory_gateway.blobs.s3 import S3Blobs, first_line, refuses
from memory_gateway.settings import Settings, SettingsError

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig, S3Config

_CLIENT: "ClientConfig" = {
    "allow_http": True,  # where the endpoint says so
    "connect_timeout": timedelta(seconds=3),
    "read_timeout": timedelta(seconds=15),  # for a server to answer, once a part of an upload has been sent
    "timeout": timedelta(hours=1),  # for the whole of a download, by a slow client too
}
_RETRIES: "RetryConfig" = {
    "max_retries": 2,
    "retry_timeout": timedelta(seconds=10),
    "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=1), "base": 2},
}
_CODE = re.compile(r"<Code>(\w+)</Code>")
_logger = logging.getLogger(__name__)


def open_bucket(settings: Settings, temporary_root: Path) -> S3Blobs:
    """The store of ``blob_url``. Nothing is asked of the bucket yet."""
    url = urlsplit(settings.blob_url or "")
    bucket, prefix = url.netloc, url.path.strip("/")
    try:
        store = S3Store(
            bucket,
            prefix=prefix or None,
            config=_config(settings, bucket),
            client_options=_CLIENT,
            retry_config=_RETRIES,
        )
    except (BaseError, ValueError) as error:
        raise SettingsError(f"blob_url: {first_line(error)}") from error
    return S3Blobs(store, "/".join(filter(None, (f"s3://{bucket}", prefix))), temporary_root)


async def check_bucket(blobs: S3Blobs, bucket: str) -> None:
    """List and write once. `SettingsError` where the answer says that a setting is wrong.

    A bucket that does not answer may be back in a minute: that is said in the log.
    """
    try:
        await blobs.check()
    except (BaseError, OSError) as error:
        if fault := _wrong_setting(error, bucket):
            raise SettingsError(fault) from error
        message = "blob_url: the bucket %s does not serve now; uploads are refused until it does: %s"
        _logger.warning(message, bucket, first_line(error))


def _config(settings: Settings, bucket: str) -> "S3Config":
    """What is not set here, the client library takes from the environment's ``AWS_…`` or from the machine's role."""
    config: S3Config = {
        "virtual_hosted_style_request": not settings.s3_path_style,
        "disable_bulk_delete": True,  # several servers do not know it
    }
    if settings.s3_endpoint:
        config["endpoint"] = settings.s3_endpoint.rstrip("/")
        if not settings.s3_path_style:
            config["endpoint"] = config["endpoint"].replace("://", f"://{bucket}.", 1)
    if settings.s3_region:
        config["region"] = settings.s3_region
    if settings.s3_access_key_id and settings.s3_secret_access_key:
        config["access_key_id"] = settings.s3_access_key_id
        config["secret_access_key"] = settings.s3_secret_access_key
    return config


def _wrong_setting(error: Exception, bucket: str) -> str | None:
    found = _CODE.search(str(error))
    code = found[1] if found else ""
    if code == "NoSuchBucket":
        return f"blob_url: there is no bucket {bucket}"
    if code == "AuthorizationHeaderMalformed" or "incorrectly configured region" in str(error):
        return f"s3_region: the bucket {bucket} lies in another region"
    if code in {"InvalidAccessKeyId", "InvalidClientTokenId"}:
        return "s3_access_key_id: the bucket's server does not know it"
    if code == "SignatureDoesNotMatch":
        return "s3_secret_access_key: does not belong to s3_access_key_id"
    if refuses(error):
        return f"s3_access_key_id: may not list and write the bucket {bucket}"
    return None
