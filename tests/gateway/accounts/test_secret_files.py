import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memory_gateway.gateway.accounts.secret_files import EmptySecret, load_or_create_secret


def test_a_secret_is_made_once_for_the_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "data" / "key_secret"
    secret = load_or_create_secret(path)
    assert len(secret) >= 43
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_or_create_secret(path) == secret
    assert path.read_text() == secret.decode() + "\n"
    assert [entry.name for entry in path.parent.iterdir()] == ["key_secret"]


def test_all_who_come_at_once_get_the_same_secret(tmp_path: Path) -> None:
    path = tmp_path / "key_secret"
    with ThreadPoolExecutor(16) as pool:
        secrets = set(pool.map(lambda _: load_or_create_secret(path), range(64)))
    assert secrets == {path.read_bytes().strip()}
    assert len(list(tmp_path.iterdir())) == 1


def test_whoever_comes_second_takes_the_firsts_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "key_secret"
    path.write_bytes(b"of the first\n")
    path.chmod(0o600)
    monkeypatch.setattr(Path, "exists", lambda _: False)
    assert load_or_create_secret(path) == b"of the first"
    assert len(list(tmp_path.iterdir())) == 1


def test_two_secrets_differ(tmp_path: Path) -> None:
    assert load_or_create_secret(tmp_path / "a") != load_or_create_secret(tmp_path / "b")


def test_an_operators_own_secret_is_used_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "admin_key").write_text("chosen by hand\n")
    assert load_or_create_secret(tmp_path / "admin_key") == b"chosen by hand"


def test_an_empty_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "key_secret").write_text("\n")
    with pytest.raises(EmptySecret):
        load_or_create_secret(tmp_path / "key_secret")
    assert (tmp_path / "key_secret").read_text() == "\n"


def test_a_secret_that_others_can_read_is_warned_of_without_telling_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "key_secret"
    secret = load_or_create_secret(path)
    assert caplog.text == ""
    path.chmod(0o644)
    load_or_create_secret(path)
    assert "chmod 600" in caplog.text
    assert secret.decode() not in caplog.text
