"""Every statement on people's data names its owner, so that nobody can forget to."""

import importlib
import pkgutil
import re
from collections.abc import Iterator

import pytest

import memory_gateway

# What touches more than one user, and why. Nothing else may.
ACROSS_USERS = {
    "engine.SPACES_OF_AGENT": "only asked with the setting shared_agents",
    "engine.BACKLOG": "counts turns, shows none",
    "engine.BACKLOG_SPACES": "which space the background worker serves next",
    "engine.OUTDATED_SPACES": "which space the background worker serves next",
    "gateway.accounts.FIND_TAKEN_ID": "an id is taken when anybody has it",
    "gateway.accounts.LIST_USERS": "the operator's command line",
    "gateway.accounts.UNFINISHED_ERASURES": "which erasure goes on next",
    "gateway.attachments.CLAIM_EXPIRED": "whose interrupted files are swept next",
    "gateway.memories.DROP_EXPIRED_KEYS": "drops what is over, shows none",
    "gateway.resources.UNFINISHED": "whose file is indexed next",
    "upstream.COUNT_WAITING": "counts, shows none",
    "upstream.DUE": "whose messages are sent next",
    "memory_service.entries.USER_IDS": "whom the daily decay visits next",
    "memory_service.entries.FIND_BY_ID": "an entry is asked for by id alone",
    "memory_service.thinking.FIND": "the API gives a log by its id alone",
    "memory_service.thinking.STATS_OF_ALL": "counts, shows none",
}

_STATEMENT = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b", re.IGNORECASE)
_OWNER = r"\b(user_id|space_no|user_no)"


def statements() -> Iterator[tuple[str, str]]:
    """Every SQL constant of every ``store.py``: its name with its room's, and its text."""
    for module in pkgutil.walk_packages(memory_gateway.__path__, "memory_gateway."):
        if module.name.rsplit(".", 1)[-1] != "store":
            continue
        room = module.name.removeprefix("memory_gateway.").removesuffix(".store")
        for name, value in vars(importlib.import_module(module.name)).items():
            if name.isupper() and name not in {"ACROSS_USERS", "BY_ID_ALONE"}:
                texts = value if isinstance(value, tuple) else (value,)
                yield from ((f"{room}.{name}", text) for text in texts if is_statement(text))


def is_statement(value: object) -> bool:
    return isinstance(value, str) and _STATEMENT.match(value) is not None


def names_owner(text: str) -> bool:
    """An insert gives the owner; everything else compares it with a parameter."""
    if re.match(r"\s*INSERT", text, re.IGNORECASE):
        return re.search(_OWNER, text.split("(", 1)[1].split(")", 1)[0]) is not None
    return re.search(_OWNER + r"\s*=\s*:\w+", text) is not None


@pytest.mark.parametrize(("name", "text"), list(statements()))
def test_a_statement_names_its_owner_or_stands_on_the_list(name: str, text: str) -> None:
    assert names_owner(text) != (name in ACROSS_USERS)


def test_the_list_names_only_statements_that_exist() -> None:
    assert ACROSS_USERS.keys() <= {name for name, _ in statements()}
