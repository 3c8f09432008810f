"""What a user id may be. It becomes a folder name, so the rule is strict and look-alikes are refused."""

import re

from memory_gateway.kit.errors import InvalidInput

PATTERN = r"[A-Za-z0-9_.@+-]{1,64}"
_USER_ID = re.compile(PATTERN)


def is_user_id(text: str) -> bool:
    return _USER_ID.fullmatch(text) is not None and text not in {".", ".."}


def check_user_id(text: str) -> str:
    """The id itself; `InvalidInput` when it breaks the rule."""
    if not is_user_id(text):
        raise InvalidInput("must be 1-64 characters of A-Z a-z 0-9 _ . @ + - and not . or ..", field="user_id")
    return text
