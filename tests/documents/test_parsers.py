"""What the parsers promise beyond text: no connection, nothing loaded where requests are served."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from memory_gateway.documents import parsers
from tests.documents.conftest import PICTURE, needs_ocr
from tests.fakes.clock import TurnedClock

READS_OFFLINE = """
import pathlib, sys
from memory_gateway.documents import parsers
from memory_gateway.documents.sniff import sniff
def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        raise SystemExit(f"{event} {arguments}")
sys.addaudithook(refuse)
path = pathlib.Path(sys.argv[1])
print(parsers.parse(path, sniff(path.read_bytes(), path.name).mime_type, 1000).text)
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


@pytest.fixture
def sizes_read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The sizes of the pages that are read; to read them is quick here, and gives their width."""
    sizes: list[tuple[int, int]] = []

    def page(image: Any) -> str:
        image.load()
        sizes.append(image.size)
        return str(image.width)

    monkeypatch.setattr(parsers, "_page", page)
    # reading sets Pillow's limit, for good: in a child of its own that is what it should do
    monkeypatch.setattr(pytest.importorskip("PIL.Image"), "MAX_IMAGE_PIXELS", None)
    monkeypatch.setattr(parsers, "_MOST_PIXELS", 20_000)
    monkeypatch.setattr(parsers, "_MOST_PIXELS_IN_ALL", 25_000)
    return sizes


def pages(path: Path, *sizes: tuple[int, int], kind: str = "TIFF") -> Path:
    image = pytest.importorskip("PIL.Image")
    first, *others = [image.new("RGB", size, "white") for size in sizes]
    first.save(path, kind, save_all=True, append_images=others)
    return path


@needs_ocr
def test_pages_are_read_until_their_pixels_are_too_many(tmp_path: Path, sizes_read: list[tuple[int, int]]) -> None:
    whole = pages(tmp_path / "whole.tif", (100, 100), (50, 100), (100, 100))
    assert parsers.parse(whole, "image/tiff", 1000) == parsers.Parsed("100\n\n50\n\n100")
    cut = pages(tmp_path / "cut.tif", (100, 100), (51, 100), (100, 100), (1, 1))
    assert parsers.parse(cut, "image/tiff", 1000) == parsers.Parsed("100\n\n51", "only the first 2 pages were read")
    assert sizes_read[3:] == [(100, 100), (51, 100)]


@needs_ocr
def test_a_page_with_too_many_pixels_of_its_own_ends_the_reading(
    tmp_path: Path, sizes_read: list[tuple[int, int]]
) -> None:
    cut = pages(tmp_path / "cut.tif", (10, 10), (100, 201), (10, 10))
    assert parsers.parse(cut, "image/tiff", 1000) == parsers.Parsed("10", "only the first page was read")
    alone = pages(tmp_path / "alone.tif", (100, 201))
    with pytest.raises(parsers.Unreadable, match="too many pixels"):
        parsers.parse(alone, "image/tiff", 1000)
    assert sizes_read == [(10, 10)]


@needs_ocr
def test_of_many_small_pages_the_first_fifty_are_read_and_that_is_said(
    tmp_path: Path, sizes_read: list[tuple[int, int]]
) -> None:
    fifty = pages(tmp_path / "fifty.tif", *[(9, 9)] * 50)
    assert parsers.parse(fifty, "image/tiff", 1000).unread is None
    more = pages(tmp_path / "more.tif", *[(9, 9)] * 51)
    assert parsers.parse(more, "image/tiff", 1000).unread == "only the first 50 pages were read"
    assert len(sizes_read) == 100


@needs_ocr
def test_pages_are_read_while_there_is_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turned = TurnedClock(0)

    def page(image: Any) -> str:
        turned.now_ms += 100
        return str(image.width)

    monkeypatch.setattr(pytest.importorskip("PIL.Image"), "MAX_IMAGE_PIXELS", None)
    monkeypatch.setattr(parsers, "_page", page)
    monkeypatch.setattr(parsers, "time", SimpleNamespace(monotonic=lambda: turned() / 1000))
    path = pages(tmp_path / "slow.tif", *[(9, 9)] * 20)
    found = parsers.parse(path, "image/tiff", 1000, 0.4)
    assert found.unread == "only the first 4 pages were read"
    assert len(found.text.split()) == 4
    assert parsers.parse(path, "image/tiff", 1000, 0.0) == parsers.Parsed("9", "only the first page was read")


@needs_ocr
def test_the_limit_is_of_all_pages_of_a_scan(tmp_path: Path, sizes_read: list[tuple[int, int]]) -> None:
    scan = pages(tmp_path / "scan.pdf", *[(100, 100)] * 4, kind="PDF")
    assert parsers.parse(scan, "application/pdf", 1000) == parsers.Parsed(
        "100\n\n100", "only the first 2 pages were read"
    )


@needs_ocr
def test_an_animation_is_one_picture(tmp_path: Path, sizes_read: list[tuple[int, int]]) -> None:
    image = pytest.importorskip("PIL.Image")
    frames = [image.new("RGB", (20, 20), colour) for colour in ("white", "red", "blue")]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert parsers.parse(tmp_path / "a.gif", "image/gif", 1000) == parsers.Parsed("20")
