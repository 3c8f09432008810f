"""What cannot be used ends the start with one line that names it, and with 1."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_gateway.demo.child import free_port
from memory_gateway.storage.choose import FILE_NAME
from memory_gateway.storage.sqlite import connect

pytestmark = pytest.mark.slow
# Nothing is closed to root, so the command runs as nobody; its modules may lie where nobody cannot read.
AS_NOBODY = """
import os, sys
import memory_gateway.cli, memory_gateway.serve
if os.geteuid() == 0:
    os.setuid(65534)
memory_gateway.cli.main()
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Open to everybody, unlike the folders of pytest."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def run(folder: Path, *arguments: str, as_nobody: bool = False) -> str:
    """The one line that the command ends with."""
    program = ("-c", AS_NOBODY) if as_nobody else ("-m", "memory_gateway.cli")
    done = subprocess.run(
        [sys.executable, *program, *arguments],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith("MEMORY_GATEWAY_")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    return line


def serve(folder: Path, *more: str, as_nobody: bool = False) -> str:
    ports = ("--gateway-port", str(free_port()), "--service-port", str(free_port()))
    return run(
        folder, "serve", "--data-dir", str(folder / "data"), "--embedder", "none", *ports, *more, as_nobody=as_nobody
    )


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_database_that_is_none(folder: Path, workers: str) -> None:
    (folder / "data").mkdir()
    path = folder / "data" / FILE_NAME
    path.write_bytes(b"not a database at all, but long enough to be taken for one. " * 200)
    expected = f"Error: data_dir: the database {path} cannot be used: file is not a database"
    assert serve(folder, "--workers", workers) == expected
    assert run(folder, "user", "list", "--data-dir", str(folder / "data")) == expected
    assert path.read_bytes().startswith(b"not a database")


def test_a_database_whose_first_pages_are_damaged(folder: Path) -> None:
    (folder / "data").mkdir()
    path = folder / "data" / FILE_NAME
    connection = connect(path)
    connection.execute("CREATE TABLE a (b TEXT)")
    connection.close()
    content = path.read_bytes()
    path.write_bytes(content[:100] + b"\xff" * (len(content) - 100))
    line = serve(folder)
    assert line.startswith(f"Error: data_dir: the database {path} cannot be used: ")
    assert "malformed" in line


def test_a_database_of_a_newer_version(folder: Path) -> None:
    (folder / "data").mkdir()
    path = folder / "data" / FILE_NAME
    connection = connect(path)
    connection.execute("CREATE TABLE schema_migrations (number INTEGER, name TEXT, applied_at TEXT)")
    connection.execute("INSERT INTO schema_migrations VALUES (9999, 'later', '')")
    connection.close()
    assert serve(folder) == (
        f"Error: data_dir: the database {path} cannot be used: "
        "the database has migrations this version does not know: [9999]"
    )


def test_a_data_folder_that_is_a_file(folder: Path) -> None:
    (folder / "data").write_text("")
    assert serve(folder) == f"Error: data_dir: {folder / 'data'} is not a folder"


def test_a_data_folder_below_a_file(folder: Path) -> None:
    (folder / "data").write_text("")
    line = serve(folder, "--data-dir", str(folder / "data" / "deeper"))
    assert line == f"Error: data_dir: {folder / 'data' / 'deeper'} cannot be used: Not a directory"


@pytest.mark.parametrize("holds_data", [False, True])
def test_a_data_folder_that_cannot_be_written(folder: Path, holds_data: bool) -> None:
    data = folder / "data"
    data.mkdir()
    if holds_data:
        (data / FILE_NAME).touch()
        (data / FILE_NAME).chmod(0o444)
    data.chmod(0o555)
    line = serve(folder, as_nobody=True)
    data.chmod(0o755)
    assert line.startswith(f"Error: data_dir: the database {data / FILE_NAME} cannot be used: ")


def test_a_data_folder_that_cannot_be_made(folder: Path) -> None:
    folder.chmod(0o555)
    line = serve(folder, as_nobody=True)
    folder.chmod(0o755)
    assert line == f"Error: data_dir: {folder / 'data'} cannot be used: Permission denied"


def test_a_secret_that_is_empty(folder: Path) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "key.secret").touch(mode=0o600)
    assert serve(folder) == f"Error: {folder / 'data' / 'key.secret'} is empty"


@pytest.mark.parametrize("face", ["gateway", "service"])
def test_a_port_that_is_taken(folder: Path, face: str) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        line = serve(folder, f"--{face}-port", str(port))
    assert line == f"Error: {face}_port: cannot listen on 127.0.0.1:{port}: Address already in use"
