"""Every statement on people's data says whose it is, so that nobody can forget to, and one shard can answer it."""

import importlib
import pkgutil
import re
from collections.abc import Iterator

import pytest

import memory_gateway
from tests.frame.sql_owners import columns_of, unbound_tables

# What goes to more than one shard, and why. Nothing else may.
ACROSS_SHARDS = {
    "engine.SPACES_OF_AGENT": "only asked with the setting shared_agents",
    "engine.BACKLOG": "counts turns, shows none",
    "engine.BACKLOG_SPACES": "which space the background worker serves next",
    "engine.OUTDATED_SPACES": "which space the background worker serves next",
    "engine.ANY_FORMER": "whether there is one, shows none",
    "engine.REINDEXED": "counts turns, shows none",
    "gateway.accounts.LIST_USERS": "the operator's command line",
    "gateway.accounts.UNFINISHED_ERASURES": "which erasure goes on next",
    "gateway.attachments.BACKFILL": "once at a start: attachments of resources that have none",
    "gateway.attachments.CLAIM_EXPIRED": "whose interrupted files are swept next",
    "gateway.limits.DROP_FULL": "drops what is over, shows none",
    "gateway.memories.DROP_EXPIRED_KEYS": "drops what is over, shows none",
    "gateway.memories.OWN_SESSIONS": "the sessions of one answer; a session's name says where its owner stands",
    "gateway.memories.EXPORT_SESSIONS": "the registry of sessions lies by session, an export is by user",
    "gateway.memories.ERASE_SESSIONS": "the registry of sessions lies by session, an erasure is by user",
    "gateway.resources.UNFINISHED": "whose file is indexed next",
    "upstream.COUNT_WAITING": "counts, shows none",
    "upstream.DUE": "whose messages are sent next",
    "memory_service.entries.CREATE_USER": "makes the number that the row lies by",
    "memory_service.entries.USER_IDS": "whom the daily decay visits next",
    "memory_service.entries.FIND_BY_ID_ALONE": "an entry older than ids that say whose they are",
    "memory_service.thinking.FIND_BY_ID_ALONE": "a log older than ids that say where they lie",
    "memory_service.thinking.STATS_OF_ALL": "counts, shows none",
    "engine.CREATE_SPACE": "makes the number that the row lies by",
}

_STATEMENT = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b", re.IGNORECASE)


def statements() -> Iterator[tuple[str, str]]:
    """Every SQL constant of every ``store.py``: its name with its room's, and its text."""
    for module in pkgutil.walk_packages(memory_gateway.__path__, "memory_gateway."):
        if module.name.rsplit(".", 1)[-1] != "store":
            continue
        room = module.name.removeprefix("memory_gateway.").removesuffix(".store")
        for name, value in vars(importlib.import_module(module.name)).items():
            texts = value if isinstance(value, tuple) else (value,)
            yield from ((f"{room}.{name}", text) for text in texts if name.isupper() and is_statement(text))


def is_statement(value: object) -> bool:
    return isinstance(value, str) and _STATEMENT.match(value) is not None


@pytest.mark.parametrize(("name", "text"), list(statements()))
def test_a_statement_goes_to_one_shard_or_stands_on_the_list(name: str, text: str) -> None:
    assert bool(unbound_tables(text)) == (name in ACROSS_SHARDS)


@pytest.mark.parametrize(("name", "text"), list(statements()))
def test_the_tables_of_a_statement_lie_together(name: str, text: str) -> None:
    assert len(columns_of(text)) == 1


def test_the_list_names_only_statements_that_exist() -> None:
    assert ACROSS_SHARDS.keys() <= {name for name, _ in statements()}


GOOD = [
    "SELECT id FROM outbox WHERE user_id = :user_id AND (id = :id OR error IS NULL)",
    "SELECT id FROM outbox WHERE :user_id = user_id",
    "SELECT o.id FROM outbox AS o JOIN users u ON u.user_id = o.user_id WHERE u.user_id = :user_id",
    "SELECT o.id FROM outbox AS o LEFT JOIN users u ON u.user_id = :user_id WHERE (o.user_id = u.user_id)",
    "DELETE FROM outbox AS o WHERE o.user_id = :user_id AND EXISTS (SELECT 1 FROM users u WHERE u.user_id = o.user_id)",
    "UPDATE outbox SET tries = 0 WHERE user_id = :user_id AND id IN (SELECT id FROM outbox WHERE user_id = :user_id)",
    "INSERT INTO user_names (folded_id, user_id) VALUES (:folded_id, :user_id) ON CONFLICT (folded_id) DO NOTHING",
    "INSERT INTO outbox (id, user_id) SELECT :id, r.user_id FROM user_resources r WHERE r.user_id = :user_id",
    "WITH mine AS (SELECT id FROM outbox WHERE user_id = :user_id) SELECT id FROM mine",
    "SELECT expires_at_ms FROM leases",
]
BAD = {
    "SELECT id FROM outbox": ["outbox"],
    "SELECT id FROM outbox WHERE user_id = :user_id OR id = :id": ["outbox"],
    "SELECT user_id = :user_id FROM outbox": ["outbox"],
    "SELECT id FROM outbox WHERE user_id > :user_id": ["outbox"],
    "SELECT id FROM outbox WHERE user_id IN (:one, :two)": ["outbox"],
    "SELECT id FROM outbox WHERE NOT user_id = :user_id": ["outbox"],
    "SELECT id FROM outbox WHERE app_id = :user_id": ["outbox"],
    "SELECT o.id FROM outbox o JOIN users u ON u.user_id = o.user_id": ["outbox", "users"],
    "SELECT o.id FROM outbox o, users u WHERE u.user_id = :user_id": ["outbox"],
    "SELECT o.id FROM outbox o JOIN users u ON u.created_at = o.next_at WHERE o.user_id = :user_id": ["users"],
    "DELETE FROM outbox WHERE user_id = :user_id AND EXISTS (SELECT 1 FROM users WHERE erased_at IS NULL)": ["users"],
    "SELECT id FROM outbox WHERE user_id = :user_id UNION ALL SELECT user_id FROM users": ["users"],
    "WITH all_of_them AS (SELECT id FROM outbox) SELECT id FROM all_of_them": ["outbox"],
    "INSERT INTO outbox (id) VALUES (:id)": ["outbox"],
    "INSERT INTO outbox (id, user_id) SELECT :id, r.user_id FROM user_resources r": ["outbox", "user_resources"],
    "UPDATE outbox SET user_id = :user_id": ["outbox"],
}


@pytest.mark.parametrize("text", GOOD)
def test_what_names_its_owner_is_known(text: str) -> None:
    assert unbound_tables(text) == []


@pytest.mark.parametrize("text", BAD)
def test_what_names_no_owner_is_found(text: str) -> None:
    assert sorted(unbound_tables(text)) == BAD[text]


def test_a_table_that_nobody_distributes_is_no_statements_to_touch() -> None:
    with pytest.raises(LookupError, match="notes"):
        unbound_tables("SELECT text FROM notes WHERE user_id = :user_id")
