"""Settings: flags beat environment, which beats ``memory-gateway.toml``, which beats defaults. Same names in all."""

import math
import os
import re
import tomllib
from collections.abc import Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Literal, get_type_hints
from urllib.parse import urlsplit

import msgspec
from msgspec import structs

ENV_PREFIX = "MEMORY_GATEWAY_"
FILE_NAME = "memory-gateway.toml"
MIB = 1 << 20
SHORTEST_SECRET = 12
SECRETS = frozenset(
    {
        "admin_key",
        "key_secret",
        "service_token",
        "database_url",
        "upstream_url",
        "embedder_key",
        "s3_access_key_id",
        "s3_secret_access_key",
    }
)
# A bucket and folders that a URI shows as they are; together with a user's file never longer than S3's 1024 bytes
_BUCKET_URL = re.compile(r"s3://[A-Za-z0-9][A-Za-z0-9._-]{1,254}(/[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}){0,4}/?")
_ENDPOINT = re.compile(r"https?://[^\s/?#@]+(/[^\s?#]*)?")


class SettingsError(Exception):
    """An unknown name or a bad value; the message is one line for a person."""


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything that can be set. Times in seconds, sizes in bytes."""

    data_dir: Path = Path("data")
    host: str = "127.0.0.1"
    gateway_port: int = 8093
    service_port: int = 8094
    trusted_proxies: tuple[str, ...] = ()
    admin_key: str | None = None
    key_secret: str | None = None
    service_token: str | None = None
    decay_daily: bool = False
    workers: int = 1
    database_url: str | None = None
    database_connections: int = 10
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    blob_url: str | None = None
    s3_endpoint: str | None = None
    s3_region: str | None = None
    s3_access_key_id: str | None = None
    s3_secret_access_key: str | None = None
    s3_path_style: bool = True

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
        for name in ("workers", "database_connections", "resource_batch", "max_upload_bytes", "max_body_bytes"):
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
        self._check_proxies()
        self._check_upstream_url()
        self._check_database_url()
        self._check_blobs()

    def __repr__(self) -> str:
        """Without the secrets, for whoever logs it."""
        shown = {name: "***" if name in SECRETS and value else value for name, value in structs.asdict(self).items()}
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    def _check_proxies(self) -> None:
        for proxy in self.trusted_proxies:
            try:
                ip_network(proxy)
            except ValueError as error:
                raise ValueError(f"trusted_proxies: {proxy!r} is no IP address or network") from error

    def _check_upstream_url(self) -> None:
        try:
            url = urlsplit(self.upstream_url)
            fits = url.scheme in {"http", "https"} and url.hostname and url.port != 0
        except ValueError:  # a port that is no number, or half an IPv6 address
            fits = False
        if not fits:
            raise ValueError("upstream_url must be http://host:port or https://host")

    def _check_blobs(self) -> None:
        if self.blob_url and not _BUCKET_URL.fullmatch(self.blob_url):
            raise ValueError("blob_url must be s3://bucket or s3://bucket/folder, of letters, digits and . _ -")
        if self.blob_url and self.upstream_shares_files:
            raise ValueError("upstream_shares_files needs the files in the data folder, so blob_url must be unset")
        if self.s3_endpoint and not _ENDPOINT.fullmatch(self.s3_endpoint):
            raise ValueError("s3_endpoint must be http://host:port or https://host")
        for name, other in (("s3_access_key_id", "s3_secret_access_key"), ("s3_secret_access_key", "s3_access_key_id")):
            if getattr(self, name) and not getattr(self, other):
                raise ValueError(f"{other} must be set where {name} is")

    def _check_database_url(self) -> None:
        if self.database_url is None:
            return
        if not self.database_url.startswith(("postgresql://", "postgres://")):
            raise ValueError("database_url must begin with postgresql://")
        if self.key_secret is None:
            raise ValueError(
                "key_secret must be set where a database_url is, the same for every process; "
                "a data folder that was served without one keeps it in the file key.secret"
            )


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
