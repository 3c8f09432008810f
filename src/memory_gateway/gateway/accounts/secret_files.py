"""Secrets that make themselves at the first start, readable by the operator alone."""

import logging
import os
import secrets
import stat
from pathlib import Path

from memory_gateway.kit.files import sync_folder
from memory_gateway.settings import SettingsError

_logger = logging.getLogger(__name__)


class EmptySecret(SettingsError):
    """The file exists and holds nothing."""


def load_or_create_secret(path: Path) -> bytes:
    """The secret in the file, made if there is none (256 random bits as text, mode 0600).

    Several processes may call this at once: a complete file is linked into place, and whoever comes second reads
    the first one's. `EmptySecret` for an empty file: to overwrite it would lock out every key made with the lost one.
    """
    if not path.exists():
        _create(path)
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        _logger.warning("%s can be read by others; run chmod 600 on it", path)
    secret = path.read_bytes().strip()
    if not secret:
        raise EmptySecret(f"{path} is empty")
    return secret


def _create(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_urlsafe(32).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        path.hardlink_to(temporary)
    except FileExistsError:
        pass  # another process was first, and its secret counts
    finally:
        temporary.unlink()
    sync_folder(path.parent)
