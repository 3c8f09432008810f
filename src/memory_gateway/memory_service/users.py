"""Who a memory belongs to: any name of 1 to 64 characters, compared for equality and nothing else."""

from memory_gateway.kit.errors import InvalidInput, MalformedRequest
from memory_gateway.kit.text import has_nul_or_surrogate

MOST_CHARACTERS = 64


def check_user_id(user_id: str | None, *, missing: str = "缺少 user_id") -> str:
    """The id. `MalformedRequest` saying ``missing`` for none or a blank one, `InvalidInput` for one nobody can have."""
    if user_id is None or not user_id.strip():
        raise MalformedRequest(missing)
    if len(user_id) > MOST_CHARACTERS:
        raise InvalidInput(f"at most {MOST_CHARACTERS} characters", field="user_id")
    if has_nul_or_surrogate(user_id):
        raise InvalidInput("must not hold NUL or lone surrogates", field="user_id")
    return user_id
