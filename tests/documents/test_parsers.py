"""What the parsers promise beyond text: no connection, nothing loaded where requests are served."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memory_gateway.documents import parsers
from tests.documents.conftest import PICTURE, needs_ocr

READS_OFFLINE = """
import pathlib, sys
from memory_gateway.documents import parsers
from memory_gateway.documents.sniff import sniff
def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        raise SystemExit(f"{event} {arguments}")
sys.addaudithook(refuse)
path = pathlib.Path(sys.argv[1])
print(parsers.parse(path, sniff(path.read_bytes(), path.name).mime_type, 1000))
"""


@pytest.mark.slow
@needs_ocr
def test_reading_a_picture_connects_to_nothing_and_keeps_no_usage_figures(tmp_path: Path) -> None:
    keep = {name: value for name, value in os.environ.items() if name not in ("CI", "GITHUB_ACTIONS")}
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [sys.executable, "-c", READS_OFFLINE, str(PICTURE)]
    done = subprocess.run(command, env=keep | home, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "会议改到周四下午三点\nInvoice 2024-118\n", done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_serving_side_imports_no_parser() -> None:
    program = (
        "import sys, memory_gateway.documents as d; d.Extractor();"
        "print(sorted({'xberg', 'rapidocr', 'onnxruntime', 'numpy', 'PIL', 'cv2'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


def test_sentences_name_password_and_limits() -> None:
    assert parsers._sentence("pdf is encrypted") == "the document is protected by a password"
    assert parsers._sentence("security limit exceeded: x") == "the document unpacks to more than is allowed"
    assert parsers._sentence("something at /tmp/x") == parsers.UNREADABLE
