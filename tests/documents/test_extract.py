"""Documents to text, with the real libraries in a real child process."""

import importlib.util
import io
import random
import time
from importlib.resources import files
from pathlib import Path

import pytest

from memory_gateway.documents import Extraction, Extractor
from memory_gateway.kit.errors import StorageUnavailable
from tests.documents.conftest import PICTURE, Read, needs_ocr
from tests.fakes import documents

SAMPLES = Path(str(files("memory_gateway.demo") / "samples"))
UNREADABLE = Extraction("", "failed", "the document cannot be read: it is damaged or of a kind that is not supported")
NO_TEXT = Extraction("", "failed", "no text was found in the document")
pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]


async def test_a_word_document_gives_its_paragraphs_in_any_script(read: Read) -> None:
    paragraphs = ["季度预算会议改到周四下午三点。", "R&D <draft> is 5 > 3", "Ünïcödé", r"C:\new\*x* a_b_c | `d` # e"]
    assert await read(documents.docx(paragraphs), "a.docx") == Extraction("\n\n".join(paragraphs), "success")


async def test_a_pdf_gives_its_paragraph_in_any_script(read: Read) -> None:
    lines = ["季度预算会议改到周四下午三点", "invoice 2024-118"]
    assert await read(documents.pdf(lines), "a.pdf") == Extraction(" ".join(lines), "success")


async def test_html_gives_what_a_reader_sees_as_markdown_and_no_script(read: Read) -> None:
    page = (
        "<!doctype html><html><head><title>T</title><meta name='author' content='x'><style>b{color:red}</style>"
        "<script>alert('evil')</script></head><body>"
        "<h1>会议纪要</h1><p>R&amp;D budget <b>approved</b></p><script>document.write('evil')</script></body></html>"
    )
    found = await read(page.encode(), "a.html")
    assert (found.status, found.text.split()) == ("success", ["#", "会议纪要", "R&D", "budget", "**approved**"])


async def test_headings_keep_their_place_and_show_no_style_name(read: Read) -> None:
    found = await read((SAMPLES / "supplier-notes.docx").read_bytes(), "supplier-notes.docx")
    assert "style_name" not in found.text
    assert found.text.index("## Decisions") < found.text.index("Minimum order") < found.text.index("## 会议记录")
    brief = (await read((SAMPLES / "launch-brief.pdf").read_bytes(), "launch-brief.pdf")).text
    assert brief.index("目标") < brief.index("首月销量目标") < brief.index("渠道") < brief.index("国内只走自营网店")


async def test_mail_gives_headers_body_and_what_is_attached(read: Read) -> None:
    attachments = {
        "draft.docx": (documents.DOCX, documents.docx(["附件里的字 inside the attachment"])),
        "note.txt": ("text/plain", b"plain note inside"),
    }
    found = await read(documents.mail("合同 contract", "请看附件。 Please see.", attachments), "a.eml")
    assert found.status == "success"
    for part in ("合同 contract", "mira@example.org", "请看附件", "draft.docx", "附件里的字", "plain note inside"):
        assert part in found.text


@pytest.mark.parametrize(
    ("name", "text"), [("a.csv", "name,amount\nMira,3\n"), ("a.json", '{"a": "中"}'), ("a.md", "# 题\n\n* x")]
)
async def test_plain_text_comes_back_as_written(read: Read, name: str, text: str) -> None:
    assert await read(text.encode(), name) == Extraction(text, "success")
    assert (await read(text.encode("gb18030"), name)).status == "success"


async def test_text_above_the_inline_limit_is_read_in_the_child(read: Read) -> None:
    line = "预算 budget line\n"
    content = (line * 70_000).encode()
    found = await read(content, "big.txt", limit_chars=900_000)
    assert len(content) > 1 << 20
    assert (found.status, found.truncated, len(found.text)) == ("success", True, 900_000)
    assert found.text.startswith(line * 100)
    assert await read(content, "big.txt") == Extraction(content.decode(), "success")


@pytest.mark.parametrize("make", [lambda text: text.encode(), lambda text: documents.docx([text])])
async def test_more_than_the_limit_is_cut_and_said(read: Read, make: object) -> None:
    content = make("预" * 100)  # type: ignore[operator]  # one of the two lambdas above
    name = "a.docx" if content.startswith(b"PK") else "a.txt"
    assert await read(content, name, limit_chars=99) == Extraction("预" * 99, "success", truncated=True)
    assert await read(content, name, limit_chars=100) == Extraction("预" * 100, "success")


@needs_ocr
async def test_a_picture_gives_its_words_line_by_line(read: Read) -> None:
    assert await read(PICTURE.read_bytes(), "shot.png") == Extraction(
        "会议改到周四下午三点\nInvoice 2024-118", "success"
    )


@needs_ocr
@pytest.mark.parametrize(("kind", "name"), [("JPEG", "a.jpg"), ("GIF", "a.gif"), ("WEBP", "a.webp"), ("TIFF", "a.tif")])
async def test_pictures_of_every_kind_are_read(read: Read, kind: str, name: str) -> None:
    image = pytest.importorskip("PIL.Image").open(PICTURE).convert("RGB")
    target = io.BytesIO()
    image.save(target, kind)
    assert "Invoice 2024-118" in (await read(target.getvalue(), name)).text


@needs_ocr
async def test_a_scanned_pdf_is_read_from_its_pictures(read: Read) -> None:
    image = pytest.importorskip("PIL.Image").open(PICTURE).convert("RGB")
    target = io.BytesIO()
    image.save(target, "PDF", resolution=150)
    found = await read(target.getvalue(), "scan.pdf")
    assert found == Extraction("会议改到周四下午三点\nInvoice 2024-118", "success")


@needs_ocr
async def test_what_was_left_out_of_a_picture_is_said(read: Read) -> None:
    image = pytest.importorskip("PIL.Image").open(PICTURE).convert("1")
    target = io.BytesIO()
    blank = image.resize((9_000, 9_000))
    blank.paste(1, (0, 0, 9_000, 9_000))
    image.save(target, "TIFF", save_all=True, append_images=[blank] * 3, compression="group4")
    found = await read(target.getvalue(), "scan.tif")
    assert (found.status, found.error) == ("success", "only the first 3 pages were read")
    assert "Invoice 2024-118" in found.text


@needs_ocr
async def test_a_picture_without_words_is_no_failure(read: Read) -> None:
    target = io.BytesIO()
    pytest.importorskip("PIL.Image").new("RGB", (200, 100), "white").save(target, "PNG")
    assert await read(target.getvalue(), "blank.png") == Extraction("", "success")


@needs_ocr
async def test_a_picture_with_far_too_many_pixels_is_refused(read: Read) -> None:
    target = io.BytesIO()
    pytest.importorskip("PIL.Image").new("1", (20_000, 20_000)).save(target, "PNG")
    assert await read(target.getvalue(), "a.png") == Extraction("", "failed", "the picture has too many pixels")


@needs_ocr
@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.gif"])
async def test_half_a_picture_never_raises(read: Read, name: str) -> None:
    found = await read(PICTURE.read_bytes()[:1500], name)
    assert found == UNREADABLE


async def test_without_the_extra_a_picture_fails_with_its_name(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    found = await read(PICTURE.read_bytes(), "shot.png")
    assert found.error == "text in pictures is read only where memory-gateway[ocr] is installed"


@pytest.mark.parametrize("name", ["song.mp3", "film.mp4"])
async def test_sound_and_film_fail_without_a_child(read: Read, name: str) -> None:
    found = await read(b"ID3\x03" + bytes(100) if name == "song.mp3" else bytes(100), name)
    assert found == Extraction("", "failed", "sound and film are kept but not turned into text")


@pytest.mark.parametrize("name", ["a.pdf", "a.docx", "a.txt", "a.png", "a"])
async def test_an_empty_file_fails(read: Read, name: str) -> None:
    assert await read(b"", name) == Extraction("", "failed", "the document is empty")


async def test_half_a_pdf_fails(read: Read) -> None:
    assert (await read(documents.pdf(["a line"] * 40)[:500], "a.pdf")).status == "failed"


async def test_noise_named_pdf_fails(read: Read) -> None:
    noise = random.Random(1).randbytes(1 << 20)
    assert await read(noise, "a.pdf") == UNREADABLE


@pytest.mark.parametrize("name", ["a.doc", "a.docx", "a.xlsx", "a.epub", "a.msg", "a.zip", "a.bin", "noname"])
async def test_noise_under_any_name_fails(read: Read, name: str) -> None:
    found = await read(random.Random(2).randbytes(5000), name)
    assert (found.status, found.text) == ("failed", "")


async def test_a_zip_bomb_fails_at_once(read: Read) -> None:
    bomb = documents.docx_bomb(300)
    started = time.monotonic()
    found = await read(bomb, "bomb.docx")
    assert found == Extraction("", "failed", "the document unpacks to more than is allowed")
    assert time.monotonic() - started < 15


async def test_an_entity_bomb_fails_or_stays_small(read: Read) -> None:
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    bomb = f'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY e0 "ha">{levels}]><r><a>&e9;</a></r>'
    found = await read(bomb.encode(), "bomb.xml", timeout=20)
    assert len(found.text) < 10_000


async def test_an_outside_entity_is_not_opened(read: Read, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("the secret")
    page = f'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY x SYSTEM "{(tmp_path / "secret.txt").as_uri()}">]><r>&x; hi</r>'
    assert "the secret" not in (await read(page.encode(), "a.xml")).text


async def test_a_document_without_text_fails(read: Read) -> None:
    assert await read(documents.docx([]), "a.docx") == NO_TEXT


async def test_a_file_that_is_gone_fails_without_its_path(extractor: Extractor, tmp_path: Path) -> None:
    found = await extractor.extract(tmp_path / "gone", name="a.pdf", mime_type="application/pdf", timeout=5)
    assert found == Extraction("", "failed", "the document cannot be opened")


async def test_an_unknown_kind_is_told_from_bytes_and_name(extractor: Extractor, tmp_path: Path) -> None:
    (tmp_path / "upload").write_bytes(documents.docx(["hello"]))
    for mime_type in ("", "application/octet-stream"):
        found = await extractor.extract(tmp_path / "upload", name="a.docx", mime_type=mime_type, timeout=60)
        assert found == Extraction("hello", "success")


async def test_bytes_are_read_by_way_of_a_private_file_that_goes(extractor: Extractor, tmp_path: Path) -> None:
    folder = tmp_path / "scratch"
    good = await extractor.extract_bytes(
        documents.docx(["附件"]), name="a.docx", mime_type=documents.DOCX, folder=folder, timeout=60
    )
    bad = await extractor.extract_bytes(b"x", name="a.pdf", mime_type="application/pdf", folder=folder, timeout=60)
    assert good == Extraction("附件", "success")
    assert bad == UNREADABLE
    assert list(folder.iterdir()) == []


async def test_bytes_that_cannot_be_written_are_the_storages_fault(extractor: Extractor, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageUnavailable):
        await extractor.extract_bytes(b"x", name="a", mime_type="", folder=tmp_path / "file", timeout=5)


async def test_a_warm_child_answers_quickly(read: Read) -> None:
    await read(documents.docx(["warm up"]), "a.docx")
    started = time.monotonic()
    assert (await read(documents.docx(["quick"]), "a.docx")).text == "quick"
    assert time.monotonic() - started < 0.5
