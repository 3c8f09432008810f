import pytest

from memory_gateway.gateway.accounts.user_ids import check_user_id, is_user_id
from memory_gateway.kit.errors import InvalidInput


@pytest.mark.parametrize("user_id", ["a", "ann", "a_b", "A-1", "ann@example.org", "x+y", "...", ".a", "a.", "0" * 64])
def test_these_are_user_ids(user_id: str) -> None:
    assert check_user_id(user_id) == user_id


@pytest.mark.parametrize(
    "user_id",
    [
        "",
        ".",
        "..",
        "../b",
        "a/b",
        "a\\b",
        "a b",
        " ann",
        "ann\n",
        "a\0",
        "%",
        "a%2fb",
        "*",
        "é",
        "安",
        "0" * 65,
        "\ud800",
    ],
)
def test_these_are_not(user_id: str) -> None:
    assert not is_user_id(user_id)
    with pytest.raises(InvalidInput) as caught:
        check_user_id(user_id)
    assert caught.value.field == "user_id"
