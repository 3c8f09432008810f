"""Seed 1: an attachment is shown where its whole file name stands in the result's raw strings."""

import time
import unicodedata
from typing import Any

import pytest

from memory_gateway.gateway.attachments.matching import FileNames
from memory_gateway.gateway.attachments.schemas import Attachment, AttachmentView
from memory_gateway.kit.text import fold_name


def attachment(name: str, uri: str | None = None, content_type: str = "image") -> Attachment:
    return Attachment("chat:1", content_type, name, uri or f"file:///store/{name}", fold_name(name))


def names(raw: dict[str, Any], *attachments: Attachment) -> list[str]:
    return [view.name for view in FileNames(attachments).named_in(raw)]


CAT = attachment("cat.png")


def test_a_name_in_the_text_brings_its_attachment_with_type_and_uri() -> None:
    views = FileNames([CAT]).named_in({"episode": "Ann sent [IMAGE: cat.png]."})
    assert views == [AttachmentView("image", "cat.png", "file:///store/cat.png")]


def test_without_the_name_there_is_none() -> None:
    assert FileNames([CAT]).named_in({"episode": "Ann sent a picture of a cat."}) == []


def test_the_extension_belongs_to_the_name() -> None:
    assert names({"episode": "cat and cat.jpg"}, CAT) == []


@pytest.mark.parametrize(
    "raw",
    [
        {"atomic_facts": [{"id": "f1", "content": "saw cat.png"}]},
        {"content": [{"type": "image", "extras": {"deep": [["cat.png"]]}}]},
        {"profile_data": {"explicit_info": [{"description": "cat.png"}]}},
    ],
)
def test_strings_are_found_at_any_depth(raw: dict[str, Any]) -> None:
    assert names(raw, CAT) == ["cat.png"]


@pytest.mark.parametrize("text", ["CAT.PNG", "Cat.Png", "x-cat.png-x"])
def test_case_does_not_matter_and_any_substring_counts(text: str) -> None:
    assert names({"episode": text}, CAT) == ["cat.png"]


def test_composed_and_decomposed_names_are_the_same() -> None:
    decomposed = unicodedata.normalize("NFD", "Résumé.pdf")
    assert names({"episode": "see RÉSUMÉ.PDF"}, attachment(decomposed)) == [decomposed]
    assert names({"episode": f"see {decomposed}"}, attachment("résumé.pdf")) == ["résumé.pdf"]


def test_a_name_with_a_line_break_is_found_as_it_is_and_as_one_line() -> None:
    broken = attachment("my\ncat.png")
    assert names({"name": "my\ncat.png"}, broken) == ["my\ncat.png"]
    assert names({"episode": "[IMAGE: my cat.png]"}, broken) == ["my\ncat.png"]
    assert names({"episode": "[IMAGE: mycat.png]"}, broken) == []


def test_a_line_break_may_stand_near_the_names_end() -> None:
    broken = attachment("cat.p\nng")
    assert names({"episode": "[IMAGE: cat.p ng]"}, broken) == ["cat.p\nng"]
    assert names({"episode": "cat.png"}, broken) == []


def test_a_name_of_control_characters_alone_does_not_stand_in_every_text() -> None:
    assert names({"episode": "a"}, attachment("\x01")) == []
    assert names({"episode": "a\x01b"}, attachment("\x01")) == ["\x01"]


@pytest.mark.parametrize("times", [1, 10_000])
def test_names_that_end_alike_are_told_apart_however_often_the_ending_stands_there(times: int) -> None:
    files = [attachment(name) for name in ("a.txt", "ba.txt", "c.txt", ".txt", "txt", "t")]
    text = ".txt " * times
    assert names({"episode": f"{text} xba.txt {text}"}, *files) == ["a.txt", "ba.txt", ".txt", "txt", "t"]


def test_endings_that_overlap_hide_no_name() -> None:
    files = [attachment("a" * length) for length in (1, 4, 5, 7, 9)]
    assert names({"episode": "b" + "a" * 7}, *files) == ["a" * 1, "a" * 4, "a" * 5, "a" * 7]


def test_an_ending_that_is_everywhere_does_not_cost_a_look_at_every_place() -> None:
    files = [attachment("a" * length) for length in range(4, 204)]
    started = time.process_time()
    assert len(names({"episode": "a" * 200_000}, *files)) == 200
    assert time.process_time() - started < 1.0


def test_chinese_names_match() -> None:
    assert names({"episode": "请看附件季度报告.pdf，谢谢"}, attachment("季度报告.pdf")) == ["季度报告.pdf"]


@pytest.mark.parametrize(
    "raw",
    [
        {"content": [{"type": "image", "base64": "cat.png"}]},
        {"base64": {"nested": ["cat.png"]}},
        {"a": {"base64": ["cat.png"]}},
    ],
)
def test_nothing_under_base64_is_scanned(raw: dict[str, Any]) -> None:
    assert names(raw, CAT) == []


def test_keys_numbers_and_nulls_are_not_text() -> None:
    assert names({"cat.png": None, "score": 0.5, "list": [1, True, None]}, CAT) == []


def test_a_name_does_not_match_across_two_strings() -> None:
    assert names({"list": ["cat.", "png"], "other": "cat."}, CAT) == []


def test_one_uri_is_shown_once_and_the_order_is_kept() -> None:
    dog, again = attachment("dog.png"), attachment("cat.png", content_type="doc")
    assert FileNames([dog, CAT, again]).named_in({"episode": "cat.png dog.png"}) == [
        AttachmentView("image", "dog.png", "file:///store/dog.png"),
        AttachmentView("image", "cat.png", "file:///store/cat.png"),
    ]


def test_two_files_of_one_name_are_both_shown() -> None:
    other = attachment("cat.png", "https://example.org/cat.png")
    assert len(FileNames([CAT, other]).named_in({"episode": "cat.png"})) == 2


def test_nesting_is_not_limited() -> None:
    raw: dict[str, Any] = {"episode": "cat.png"}
    for _ in range(5000):
        raw = {"inner": [raw]}
    assert names(raw, CAT) == ["cat.png"]
