"""Seed 1: an attachment is shown where its whole file name stands in the result's raw strings."""

import unicodedata
from typing import Any

import pytest

from memory_gateway.gateway.attachments.matching import matching
from memory_gateway.gateway.attachments.schemas import Attachment, AttachmentView
from memory_gateway.kit.text import fold_name


def attachment(name: str, uri: str | None = None, content_type: str = "image") -> Attachment:
    return Attachment("chat:1", content_type, name, uri or f"file:///store/{name}", fold_name(name))


def names(raw: dict[str, Any], *attachments: Attachment) -> list[str]:
    return [view.name for view in matching(raw, attachments)]


CAT = attachment("cat.png")


def test_a_name_in_the_text_brings_its_attachment_with_type_and_uri() -> None:
    views = matching({"episode": "Ann sent [IMAGE: cat.png]."}, [CAT])
    assert views == [AttachmentView("image", "cat.png", "file:///store/cat.png")]


def test_without_the_name_there_is_none() -> None:
    assert matching({"episode": "Ann sent a picture of a cat."}, [CAT]) == []


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
    assert matching({"episode": "cat.png dog.png"}, [dog, CAT, again]) == [
        AttachmentView("image", "dog.png", "file:///store/dog.png"),
        AttachmentView("image", "cat.png", "file:///store/cat.png"),
    ]


def test_two_files_of_one_name_are_both_shown() -> None:
    other = attachment("cat.png", "https://example.org/cat.png")
    assert len(matching({"episode": "cat.png"}, [CAT, other])) == 2


def test_nesting_is_not_limited() -> None:
    raw: dict[str, Any] = {"episode": "cat.png"}
    for _ in range(5000):
        raw = {"inner": [raw]}
    assert names(raw, CAT) == ["cat.png"]
