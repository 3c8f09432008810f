import asyncio
import threading
import time
import unicodedata
from pathlib import Path, PurePosixPath, PureWindowsPath
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_gateway.kit.files import NewFile, file_uri, make_folder, off_loop, remove_folder, safe_name

FOLDER = Path("/store/ann/resources/r1")
FAMILY = "👨\u200d👩\u200d👧\u200d👦"


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("report.pdf", "report.pdf"),
        ("季度报告.pdf", "季度报告.pdf"),
        ("party 🎉.png", "party 🎉.png"),
        ("../../etc/x", "x"),
        ("..\\x", "x"),
        ("C:\\Users\\ann\\notes.txt", "notes.txt"),
        ("folder/", "folder"),
        ("a\0b\nc.txt", "a_b_c.txt"),
        ('what "is" this?.txt', "what _is_ this_.txt"),
        ("invoice\u202efdp.exe", "invoice_fdp.exe"),
        (" . .hidden. . ", "hidden"),
        ("CON", "_CON"),
        ("con.txt", "_con.txt"),
        ("Lpt1 .log", "_Lpt1 .log"),
        ("console.txt", "console.txt"),
        ("", "file"),
        ("..", "file"),
        ("///", "file"),
        ("\ud800.txt", "_.txt"),
    ],
)
def test_a_name_is_cleaned_for_the_disk(name: str, safe: str) -> None:
    assert safe_name(name) == safe


def test_a_decomposed_name_is_composed() -> None:
    assert safe_name(unicodedata.normalize("NFD", "résumé.pdf")) == "résumé.pdf"


def test_a_long_name_keeps_its_extension() -> None:
    assert safe_name("x" * 300 + ".pdf") == "x" * 251 + ".pdf"
    assert safe_name("季" * 100 + ".pdf") == "季" * 83 + ".pdf"


def test_what_is_no_extension_is_cut_like_the_rest() -> None:
    assert safe_name("v1." + "x" * 300) == "v1." + "x" * 252


def test_a_long_name_is_not_cut_inside_a_character() -> None:
    assert safe_name("x" * 235 + FAMILY + ".png") == "x" * 235 + ".png"
    assert safe_name("x" * 248 + "q\u0323\u0307" + ".png") == "x" * 248 + ".png"


def test_a_name_that_becomes_reserved_when_it_is_cut_is_safe_as_well() -> None:
    assert safe_name("nul" + " " * 300 + "x.txt") == "_nul.txt"


@given(st.text(max_size=400) | st.text(alphabet="./\\ :\0conNUL🎉é", max_size=40))
def test_any_name_becomes_one_component_inside_its_folder(name: str) -> None:
    safe = safe_name(name)
    assert 1 <= len(safe.encode()) <= 255
    assert PurePosixPath(safe).parts == (safe,)
    assert PureWindowsPath(safe).parts == (safe,)
    assert Path(FOLDER / safe).resolve().parent == FOLDER
    assert safe not in {".", ".."}
    assert safe == safe.strip(" .")
    assert not any(unicodedata.category(one) in {"Cc", "Cs"} for one in safe)
    assert unicodedata.is_normalized("NFC", safe)


@given(st.text(max_size=300))
def test_a_safe_name_is_left_as_it_is(name: str) -> None:
    assert safe_name(safe_name(name)) == safe_name(name)


def test_a_file_uri_is_percent_encoded() -> None:
    assert file_uri(FOLDER / "a b%#?é.txt") == "file:///store/ann/resources/r1/a%20b%25%23%3F%C3%A9.txt"


@given(st.text(max_size=60))
def test_a_file_uri_names_exactly_its_file(name: str) -> None:
    path = FOLDER / safe_name(name)
    assert unquote(urlsplit(file_uri(path)).path) == str(path)


def test_a_new_file_is_not_there_until_it_is_finished(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "notes.txt"
    with NewFile(path) as file:
        file.write(b"one ")
        file.write(b"two")
        assert not path.exists()
        file.finish()
    assert path.read_bytes() == b"one two"
    assert [one.name for one in path.parent.iterdir()] == ["notes.txt"]


def test_a_file_that_is_not_finished_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), NewFile(tmp_path / "notes.txt") as file:
        file.write(b"half")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_a_file_whose_folder_was_removed_cannot_be_finished(tmp_path: Path) -> None:
    with NewFile(tmp_path / "a" / "notes.txt") as file:
        remove_folder(tmp_path / "a")
        with pytest.raises(FileNotFoundError):
            file.finish()


def test_making_and_removing_a_folder_can_be_done_twice(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    make_folder(folder)
    make_folder(folder)
    (folder / "x").write_bytes(b"x")
    remove_folder(tmp_path / "a")
    remove_folder(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_removing_a_folder_removes_links_but_not_what_they_point_at(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    make_folder(outside)
    (outside / "kept").write_bytes(b"x")
    make_folder(tmp_path / "inside")
    (tmp_path / "inside" / "link").symlink_to(outside)
    remove_folder(tmp_path / "inside")
    assert [one.name for one in tmp_path.rglob("*")] == ["outside", "kept"]


async def test_blocking_work_ends_before_its_cancelled_caller_goes_on() -> None:
    done = threading.Event()

    def work() -> None:
        time.sleep(0.05)
        done.set()

    task = asyncio.create_task(off_loop(work))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done.is_set()
