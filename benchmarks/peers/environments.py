"""The peers, each installed once into an environment of its own under ``benchmarks/.cache/peers``."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from venv import create as create_environment

from msgspec import Struct

from benchmarks.report import Skipped
from benchmarks.servers import CACHE

ROOT = Path(__file__).parent.parent.parent
OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "MEM0_TELEMETRY": "False",
    "ANONYMIZED_TELEMETRY": "False",
    "DO_NOT_TRACK": "1",
    "NO_PROXY": "127.0.0.1",
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


class Peer(Struct, frozen=True):
    """Its requirements are pinned: a figure belongs to a version.

    Without dependencies they are all that is used, and spare gigabytes: txtai asks for torch, and with vectors from
    elsewhere never loads it.
    """

    name: str
    requirements: tuple[str, ...]
    with_dependencies: bool = True

    @property
    def driver(self) -> str:
        return f"benchmarks.peers.{self.name}_driver"


MEM0 = Peer("mem0", ("mem0ai==2.2.1", "qdrant-client==1.20.0", "fastembed==0.9.1"))
TXTAI = Peer(
    "txtai",
    (
        "txtai==9.14.0",
        "faiss-cpu==1.15.1",
        "msgpack==1.2.4",
        "numpy==2.4.6",
        "packaging==26.4",
        "pyyaml==6.0.4",
        "regex==2026.11.19",
    ),
    with_dependencies=False,
)


def installed(peer: Peer) -> Path:
    """The Python of the peer's environment, made at the first call. Raises `Skipped` when a package cannot be had."""
    folder = CACHE / "peers" / peer.name
    python, done = folder / "bin" / "python", folder / ".installed"
    wanted = "\n".join(peer.requirements)
    if done.is_file() and done.read_text("utf-8") == wanted:
        return python
    print(f"  installing {', '.join(peer.requirements)} into an environment of its own (once)", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    create_environment(folder)
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--only-binary", ":all:"]
    command += [] if peer.with_dependencies else ["--no-deps"]
    pip = subprocess.run([*command, *peer.requirements], check=False, stderr=subprocess.PIPE, text=True)
    if pip.returncode != 0:
        raise Skipped(f"{peer.name}: {_last_error(pip.stderr)}")
    done.write_text(wanted, "utf-8")
    return python


def environ(folder: Path) -> dict[str, str]:
    """For a driver: no hub, no telemetry, its files in ``folder``."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**inherited, **OFFLINE, "HOME": str(folder), "MEM0_DIR": str(folder / "mem0")}


def _last_error(output: str) -> str:
    errors = [line for line in output.splitlines() if line.startswith("ERROR")]
    return errors[-1].removeprefix("ERROR: ") if errors else "pip could not install it"
