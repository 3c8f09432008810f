"""Texts that are close to each other: Latin, Han, mixed, signs, and long ones."""

from hypothesis import strategies as st

LATIN = ("the door code is 4471", "Deploys on Fridays are allowed.", "C++ costs -5 or 1.5")
HAN = ("门禁码是4471。", "每天早上看早报，喝咖啡。", "设备放在C盘。资料備份完成。")
MIXED = ("重跑gen-itgc后再提交", "Ｆｕｌｌ width and café, ﬁne", "🎉🎉", "👍 好", "é", "好")
# on both sides of where signatures get longer: 64, 128 and 256 bigrams
LONG = tuple(
    "".join(chr(0x4E00 + (seed * 977 + at * 31) % 9000) for at in range(size))
    for seed, size in ((1, 62), (2, 66), (3, 86), (4, 128), (5, 170), (6, 258))
)
CLOSE = st.text(alphabet="abc", min_size=1, max_size=9)
PIECES = ["", "x", "4", " ", "。", ". ", "好", "A", "é", "\n"]

edits = st.lists(st.tuples(st.integers(0, 300), st.sampled_from(PIECES)), max_size=3)


def edited(text: str, changes: list[tuple[int, str]]) -> str:
    for change, piece in changes:
        at = change % (len(text) + 1)
        text = text[:at] + piece + text[at + 1 :]
    return text


base_texts = st.lists(st.sampled_from(LATIN + HAN + MIXED + LONG), min_size=1, max_size=2)


def near(bases: list[str]) -> st.SearchStrategy[str]:
    """Texts around the threshold: a few characters away from a base, or several bases one after the other."""
    return st.one_of(
        st.builds(edited, st.sampled_from(bases), edits),
        st.lists(st.sampled_from(bases), min_size=2, max_size=3).map(" ".join),
        CLOSE,
    ).filter(lambda text: text.strip() != "")
