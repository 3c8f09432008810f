"""Which store the settings ask for, and what they may say."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memory_gateway.blobs.choose import check_blobs, open_blobs
from memory_gateway.settings import Settings, SettingsError, load_settings

SECRET = "a-secret-that-nobody-shows"
KEYS: dict[str, Any] = {"s3_access_key_id": "AKIAEXAMPLE", "s3_secret_access_key": SECRET}


async def test_without_a_bucket_files_lie_in_the_data_folder(tmp_path: Path) -> None:
    for blob_url in (None, ""):
        settings = Settings(data_dir=tmp_path / "data", blob_url=blob_url)
        await check_blobs(settings)
        blobs = open_blobs(settings)
        assert (blobs.kind, blobs.uri("ann/a b")) == ("folder", f"file://{tmp_path}/data/storage/ann/a%20b")
        assert (tmp_path / "data" / "storage").stat().st_mode & 0o777 == 0o700


def test_with_a_bucket_nothing_is_kept_in_the_data_folder(tmp_path: Path) -> None:
    blobs = open_blobs(Settings(data_dir=tmp_path, blob_url="s3://box/of/users/", **KEYS))
    assert (blobs.kind, blobs.uri("ann/a b")) == ("s3", "s3://box/of/users/ann/a b")
    assert [path.name for path in tmp_path.iterdir()] == ["tmp"]


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"blob_url": "box"}, "blob_url must be s3://bucket or s3://bucket/folder"),
        ({"blob_url": "s3://"}, "blob_url must be s3://bucket or s3://bucket/folder"),
        ({"blob_url": "https://box.example"}, "blob_url must be s3://bucket or s3://bucket/folder"),
        ({"blob_url": "s3://key:word@box"}, "blob_url must be s3://bucket or s3://bucket/folder"),
        ({"blob_url": "s3://box/../other"}, "blob_url must be s3://bucket or s3://bucket/folder"),
        ({"blob_url": "s3://box/a//b"}, "blob_url must be s3://bucket or s3://bucket/folder"),
        ({"blob_url": "s3://box/季度"}, "blob_url must be s3://bucket or s3://bucket/folder"),
        ({"blob_url": "s3://box?x=1"}, "blob_url must be s3://bucket or s3://bucket/folder"),
        ({"blob_url": "s3://box", "upstream_shares_files": True}, "upstream_shares_files needs the files in the data"),
        ({"s3_endpoint": "minio:9000"}, "s3_endpoint must be http://host:port or https://host"),
        ({"s3_endpoint": f"http://key:{SECRET}@minio"}, "s3_endpoint must be http://host:port or https://host"),
        ({"s3_endpoint": "http://minio?x=1"}, "s3_endpoint must be http://host:port or https://host"),
        ({"s3_access_key_id": "AKIAEXAMPLE"}, "s3_secret_access_key must be set where s3_access_key_id is"),
        ({"s3_secret_access_key": SECRET}, "s3_access_key_id must be set where s3_secret_access_key is"),
        ({"s3_path_style": "maybe"}, "s3_path_style"),
    ],
)
def test_a_bad_setting_is_one_line_that_names_it_and_shows_no_secret(values: dict[str, Any], fault: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(values, environ={})
    assert fault in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert SECRET not in str(caught.value)


def test_the_bucket_comes_from_the_environment_like_every_setting() -> None:
    environ = {f"MEMORY_GATEWAY_{name.upper()}": value for name, value in KEYS.items()}
    settings = load_settings(
        {}, {**environ, "MEMORY_GATEWAY_BLOB_URL": "s3://box", "MEMORY_GATEWAY_S3_PATH_STYLE": "false"}
    )
    assert (settings.blob_url, settings.s3_secret_access_key, settings.s3_path_style) == ("s3://box", SECRET, False)


def test_settings_that_are_shown_show_no_secret() -> None:
    settings = Settings(**KEYS, admin_key=SECRET, key_secret=SECRET, service_token=SECRET, embedder_key=SECRET)
    for text in (repr(settings), str(settings), f"{settings}"):
        assert SECRET not in text
        assert "AKIAEXAMPLE" not in text
        assert "s3_secret_access_key='***'" in text
        assert "blob_url=None" in text


def test_the_buckets_client_is_loaded_only_where_there_is_a_bucket(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; import memory_gateway.server as server\n"
        "from memory_gateway.settings import Settings\n"
        "server.open_blobs(Settings(data_dir=Path(sys.argv[1])))\n"
        "print('obstore' in sys.modules)\n"
        "server.open_blobs(Settings(data_dir=Path(sys.argv[1]), blob_url='s3://box'))\n"
        "print('obstore' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
