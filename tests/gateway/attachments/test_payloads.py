import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_gateway.gateway.attachments import payloads
from memory_gateway.gateway.attachments.payloads import decoded, digest


@given(st.binary(min_size=1, max_size=100))
def test_the_digest_is_of_the_bytes(content: bytes) -> None:
    code = base64.b64encode(content).decode()
    assert b"".join(decoded(code)) == content
    assert digest(code) == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("size", [11, 12, 13, 24, 25])
def test_pieces_join_to_the_whole(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payloads, "_PIECE", 16)
    content = bytes(range(size))
    assert b"".join(decoded(base64.b64encode(content).decode())) == content


@pytest.mark.parametrize(
    "code",
    [
        "",
        "====",
        "QQ",
        "QQ=",
        "QUI",
        "Q",
        "QUJD\nQUJD",
        "QUJD QUJD",
        "QUJ-",
        "QUJ_",
        "季度",
        "data:image/png;base64,QUJD",
    ],
)
def test_what_is_not_strict_base64_is_refused(code: str) -> None:
    with pytest.raises(ValueError):
        digest(code)


def test_padding_at_the_end_of_a_piece_is_refused_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payloads, "_PIECE", 8)
    assert b"".join(decoded("QUJDQUJDQUJDQUI=")) == b"ABCABCABCAB"
    for code in ("QUJDQUI=QUJD", "QUJDQQ==QUJDQUJDQUJD"):
        with pytest.raises(ValueError):
            list(decoded(code))
