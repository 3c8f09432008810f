"""A setting that cannot be meant ends the start with one line that names it."""

import pytest

from memory_gateway.settings import SettingsError, load_settings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("upstream_url", "127.0.0.1:8000"),
        ("upstream_url", "ftp://127.0.0.1"),
        ("upstream_url", "http://"),
        ("upstream_url", "http://host:port"),
        ("upstream_url", "http://host:0"),
        ("upstream_url", "http://[::1"),
        ("database_url", "sqlite:///x"),
        ("database_url", "postgresql://host/name"),  # without a key_secret
        ("database_connections", "0"),
        ("gateway_port", "65536"),
        ("rate_limit", "0"),
        ("upstream_timeout", "inf"),
        ("key_secret", "short"),
        ("trusted_proxies", "10.0.0.0/8, proxy.example"),
        ("colour", "red"),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"{name}|key_secret must be set where a database_url is"):
        load_settings({}, {f"MEMORY_GATEWAY_{name.upper()}": value})


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8000", "https://everos.example/base/", "http://[::1]:8000", "http://ann:word@host"]
)
def test_an_upstream_is_an_http_address(url: str) -> None:
    assert load_settings({}, {"MEMORY_GATEWAY_UPSTREAM_URL": url}).upstream_url == url


def test_secrets_are_not_shown() -> None:
    environ = {
        "MEMORY_GATEWAY_KEY_SECRET": "a-long-secret-1",
        "MEMORY_GATEWAY_DATABASE_URL": "postgresql://gateway:a-long-secret-2@host/memory",
        "MEMORY_GATEWAY_ADMIN_KEY": "a-long-secret-3",
        "MEMORY_GATEWAY_UPSTREAM_URL": "http://gateway:a-long-secret-4@everos.example",
    }
    assert "a-long-secret" not in repr(load_settings({}, environ))
