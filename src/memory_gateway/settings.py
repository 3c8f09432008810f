"""Settings: flags beat environment, which beats ``memory-gateway.toml``, which beats defaults. Same names in all."""

import math
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_type_hints

import msgspec

ENV_PREFIX = "MEMORY_GATEWAY_"
FILE_NAME = "memory-gateway.toml"
MIB = 1 << 20
SHORTEST_SECRET = 12


class SettingsError(Exception):
    """An unknown name or a bad value; the message is one line for a person."""


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything that can be set. Times in seconds, sizes in bytes."""

    data_dir: Path = Path("data")
    host: str = "127.0.0.1"
    gateway_port: int = 8093
    service_port: int = 8094
    admin_key: str | None = None
    key_secret: str | None = None
    service_token: str | None = None
    decay_daily: bool = False
    workers: int = 1
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    upstream: Literal["embedded", "everos"] = "embedded"
    upstream_url: str = "http://127.0.0.1:8000"
    upstream_prefix: Literal["v1", "v2"] = "v1"
    upstream_timeout: float = 60.0
    upstream_shares_files: bool = False
    outbox: bool = False

    embedder: Literal["auto", "none", "local", "openai"] = "auto"
    embedder_url: str | None = None
    embedder_model: str | None = None
    embedder_key: str | None = None
    embedder_dim: int | None = None

    allowed_file_roots: tuple[Path, ...] = ()
    allowed_uri_hosts: tuple[str, ...] = ()
    allow_other_senders: bool = False
    shared_agents: bool = False
    resource_batch: int = 100
    max_upload_bytes: int = 50 * MIB
    max_body_bytes: int = 72 * MIB
    inline_index_bytes: int = 1 * MIB
    rate_limit: float | None = None
    auth_failure_limit: float = 30.0
    extraction_timeout: float = 120.0

    def __post_init__(self) -> None:
        for name in ("gateway_port", "service_port"):
            if not 0 <= getattr(self, name) <= 65_535:
                raise ValueError(f"{name} must be 0..65535")
        for name in ("workers", "resource_batch", "max_upload_bytes", "max_body_bytes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        for name in ("rate_limit", "auth_failure_limit", "extraction_timeout", "upstream_timeout"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"{name} must be a number above 0")
        if self.inline_index_bytes < 0:
            raise ValueError("inline_index_bytes must not be negative")
        for name in ("admin_key", "key_secret", "service_token"):
            value = getattr(self, name)
            if value is not None and len(value) < SHORTEST_SECRET:
                raise ValueError(f"{name} must have at least {SHORTEST_SECRET} characters")


def load_settings(
    flags: Mapping[str, Any], environ: Mapping[str, str] | None = None, file: Path | None = None
) -> Settings:
    """Merge the four sources. Raises `SettingsError` for an unknown name or a bad value."""
    merged = {**_from_file(file), **_from_environ(os.environ if environ is None else environ)}
    merged.update({name: value for name, value in flags.items() if value is not None})
    try:
        return msgspec.convert(merged, Settings, strict=False, dec_hook=_from_text)
    except msgspec.ValidationError as error:
        raise SettingsError(f"settings: {error}") from error


def _from_text(kind: type, value: Any) -> Any:
    if kind is Path and isinstance(value, str | Path):
        return Path(value)
    raise ValueError("Expected a path")


def _from_file(file: Path | None) -> dict[str, Any]:
    path = file or Path(FILE_NAME)
    if file is None and not path.exists():
        return {}
    try:
        return _checked(tomllib.loads(path.read_text("utf-8")), str(path))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: {error}") from error


def _from_environ(environ: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {
        name.removeprefix(ENV_PREFIX).lower(): value for name, value in environ.items() if name.startswith(ENV_PREFIX)
    }
    for name in _list_names() & found.keys():
        found[name] = [part.strip() for part in found[name].split(",") if part.strip()]
    return _checked(found, "environment")


def _checked(values: dict[str, Any], source: str) -> dict[str, Any]:
    if unknown := sorted(values.keys() - set(Settings.__struct_fields__)):
        raise SettingsError(f"{source}: unknown setting {unknown[0]!r}")
    return values


def _list_names() -> set[str]:
    return {name for name, kind in get_type_hints(Settings).items() if str(kind).startswith("tuple")}
