"""F11 for this room: what an upstream that opens URIs may be handed."""

from pathlib import Path

import pytest

from memory_gateway.engine.schemas import ContentItem, Message
from memory_gateway.gateway.memories.uris import UriPolicy
from memory_gateway.kit.errors import UriNotAllowed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """``shared`` is an allowed root; the data folder lies inside it, as a careless setting may have it."""
    for name in ("shared/data", "other"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("shared/a b.png", "shared/图.png", "shared/data/secret", "other/secret"):
        (tmp_path / name).write_text("x")
    (tmp_path / "shared/out").symlink_to(tmp_path / "other")
    (tmp_path / "shared/link").symlink_to(tmp_path / "other/secret")
    (tmp_path / "shared/in").symlink_to(tmp_path / "shared/a b.png")
    (tmp_path / "shared/loop").symlink_to(tmp_path / "shared/loop")
    return tmp_path


def is_allowed(folder: Path, uri: str) -> bool:
    policy = UriPolicy([folder / "shared"], ["files.example:443", "Intra.example:8080"], folder / "shared/data")
    content = [ContentItem("text", text="see"), ContentItem("pdf", uri=uri)]
    try:
        policy.check([Message("ann", "user", 1, "hi"), Message("ann", "user", 2, content)])
    except UriNotAllowed as error:
        refusal = (error.status, error.field, str(folder) in error.message)
        return refusal != (422, "messages.1.content.1.uri", False)
    return True


@pytest.mark.parametrize(
    "uri",
    [
        "file://{}/shared/a%20b.png",
        "file://{}/shared/a b.png",
        "file://localhost{}/shared/图.png",
        "FILE://{}/shared/%E5%9B%BE.png",
        "file:{}/shared/in",
        "file://{}/shared/not-there-yet.png",
        "https://files.example/a/b.pdf?x=1#y",
        "HTTPS://FILES.example:443/图.pdf",
        "http://intra.example:8080",
    ],
)
def test_what_the_settings_name_goes_through(folder: Path, uri: str) -> None:
    assert is_allowed(folder, uri.format(folder))


@pytest.mark.parametrize(
    "uri",
    [
        "file:///etc/hosts",
        "file:/etc/hosts",
        "file:////etc/hosts",
        "file://{}/other/secret",
        "file://{}/shared/../other/secret",
        "file://{}/shared/%2e%2e/other/secret",
        "file://{}/shared/%2E./shared/a%20b.png",
        "file://{}/shared/out/secret",
        "file://{}/shared/link",
        "file://{}/shared/loop",
        "file://{}/shared/data/secret",
        "file://{}/shared/data",
        "file://{}/shared-too/x",
        "file://{}/shared/a%00.png",
        "file://{}/shared/%ff",
        "file://{}/shared/a?b",
        "file://elsewhere{}/shared/in",
        "file:shared/in",
        "file://",
    ],
)
def test_no_file_outside_the_roots_or_in_the_data_folder(folder: Path, uri: str) -> None:
    assert not is_allowed(folder, uri.format(folder))


@pytest.mark.parametrize(
    "uri",
    [
        "http://169.254.169.254/latest/meta-data",
        "http://127.0.0.1:8093/",
        "http://localhost/",
        "http://[::1]/",
        "http://files.example/a",
        "https://files.example:8443/a",
        "https://files.example.evil.example/a",
        "https://ann@files.example/a",
        "https://files.example@evil.example/a",
        "https://files.example:443@evil.example/a",
        "https://evil.example#@files.example/",
        "https:files.example/a",
        "https:///files.example/a",
        "https://files.example:/a",
        "https://files。example/a",
        "http://",
    ],
)
def test_no_host_that_is_not_named_with_its_port(folder: Path, uri: str) -> None:
    assert not is_allowed(folder, uri)


@pytest.mark.parametrize(
    "uri",
    [
        " file:///etc/hosts",
        "file:///etc/hosts\n",
        "fi\nle:///etc/hosts",
        "ht\ttp://127.0.0.1/",
        "https:\\\\127.0.0.1\\a",
        "https://files.example\\@evil.example/",
        "\x00https://files.example/",
        "\u3000http://127.0.0.1/",
    ],
)
def test_nothing_that_parsers_read_differently(folder: Path, uri: str) -> None:
    assert not is_allowed(folder, uri)


@pytest.mark.parametrize("uri", ["s3://bucket/a.png", "data:image/png;base64,AAAA", "a.png", "/etc/hosts", ""])
def test_what_no_upstream_opens_is_left_to_it_to_refuse(folder: Path, uri: str) -> None:
    assert is_allowed(folder, uri)
