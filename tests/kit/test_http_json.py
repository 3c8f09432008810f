from typing import Annotated, Any

import msgspec
import pytest

from memory_gateway.kit.errors import InvalidInput, MalformedRequest
from memory_gateway.kit.http_json import decode_json, invalid_input, refuse_unclean


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a note; ``size`` 7 is forbidden by a rule of the struct."""

    base64: str
    size: int = 0

    def __post_init__(self) -> None:
        if self.size == 7:
            raise ValueError("size: must not be 7")


class Note(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the tests read."""

    text: Annotated[str, msgspec.Meta(max_length=1000)]
    parts: list[Part] = msgspec.field(default_factory=list)
    extras: dict[str, Any] = msgspec.field(default_factory=dict)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"text":1}', "text"),
        (b"{}", "text"),
        (b'{"text":"a","colour":1}', "colour"),
        (b'{"text":"a","parts":[{"base64":"x"},{"base64":5}]}', "parts.1.base64"),
        (b'{"text":"a","parts":[{"base64":"x"},{}]}', "parts.1.base64"),
        (b'{"text":"a","parts":[{"base64":"x","uri":1}]}', "parts.0.uri"),
        (b'{"text":"a","parts":[{"base64":"x","size":7}]}', "parts.0.size"),
        (b'{"text":"a","parts":[{"base64":"x","size":3.5}]}', "parts.0.size"),
        (b'{"text":"a","extras":[]}', "extras"),
        (b"[]", "body"),
        (b"null", "body"),
    ],
)
def test_a_fault_names_its_field(body: bytes, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        decode_json(body, Note)
    assert caught.value.details == {"field": field}
    assert caught.value.message.startswith(f"{field}: ")


def test_a_rule_of_a_struct_keeps_its_own_words() -> None:
    with pytest.raises(InvalidInput, match=r"^parts\.0\.size: must not be 7$"):
        decode_json(b'{"text":"a","parts":[{"base64":"x","size":7}]}', Note)


def test_a_fault_in_a_map_is_named_by_a_star() -> None:
    assert invalid_input("Expected `int`, got `str` - at `$.sizes[...].a`").field == "sizes.*.a"


@pytest.mark.parametrize(
    "body",
    [
        b'{"text":',
        b"",
        b'{"text":NaN}',
        b'{"text":"a","extras":{"n":Infinity}}',
        b'{"text":"\xff"}',
        b'{"text":"a\x00b"}',
        b'{"text":"a"} {}',
        b'{"text":"a","extras":' + b'{"a":' * 5000 + b"1" + b"}" * 5001,
    ],
    ids=["cut", "empty", "NaN", "Infinity", "not UTF-8", "raw NUL", "two values", "too deep"],
)
def test_what_is_no_json_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedRequest):
        decode_json(body, Note)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (rb'{"text":"a\u0000b"}', "text"),
        (rb'{"text":"a","extras":{"deep":[{"x":"\u0000"}]}}', "extras.deep.0.x"),
        (rb'{"text":"a","extras":{"k\u0000":1}}', "extras.k?"),
        (rb'{"text":"\ud800"}', "text"),
        (rb'{"text":"a","parts":[{"base64":"x"},{"base64":"\udc00x"}]}', "parts.1.base64"),
    ],
)
def test_nul_and_lone_surrogates_are_refused_by_field(body: bytes, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        decode_json(body, Note)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (rb'{"text":"\ud83d\ude00"}', "😀"),
        (rb'{"text":"back\\u0000slash"}', r"back\u0000slash"),
        ('{"text":"設備放在C盘 é"}'.encode(), "設備放在C盘 é"),
    ],
)
def test_clean_text_comes_out_as_it_was_written(body: bytes, text: str) -> None:
    assert decode_json(body, Note).text == text


def test_of_two_members_with_one_name_the_last_wins() -> None:
    assert decode_json(b'{"text":"first","text":"last"}', Note).text == "last"


def test_raw_members_keep_the_clients_bytes() -> None:
    class Envelope(msgspec.Struct):
        messages: msgspec.Raw

    assert bytes(decode_json(b'{"messages":[ 1, 2.50 ]}', Envelope).messages) == b"[ 1, 2.50 ]"


def test_unclean_text_from_elsewhere_is_refused_with_the_name_that_it_is_given() -> None:
    refuse_unclean("fine", "title")
    with pytest.raises(InvalidInput) as caught:
        refuse_unclean("\0", "title")
    assert caught.value.field == "title"
