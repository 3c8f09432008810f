"""Bytes of a text file to characters, whatever the encoding."""

from charset_normalizer import from_bytes

# The encodings that plain text comes in where it is not Unicode. More of them only make more wrong guesses.
_LEGACY = ["gb18030", "big5", "shift_jis", "euc_kr", "cp1252", "cp1251"]
_SAMPLE = 1 << 16
_MOST_NUL_SHARE = 0.1


def decode(content: bytes) -> str | None:
    """The text, without byte order mark and NUL; None for what is no text. A character cut at the end is dropped."""
    encoding = _unicode(content) or _legacy(content)
    if encoding is None:
        return None
    return content.decode(encoding, "replace").rstrip("\ufffd").replace("\0", "")


def _unicode(content: bytes) -> str | None:
    if content.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return "utf-32"
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if _is_utf8(content):
        return "utf-8-sig"
    sample = content[:_SAMPLE]
    if sample.count(0) > _MOST_NUL_SHARE * len(sample):
        return "utf-16-le" if sample[1::2].count(0) > sample[::2].count(0) else "utf-16-be"
    return None


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return content.count(0) <= _MOST_NUL_SHARE * len(content)


def _legacy(content: bytes) -> str | None:
    best = from_bytes(content[:_SAMPLE], cp_isolation=_LEGACY).best()
    return best.encoding if best else None
