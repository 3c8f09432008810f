"""How the tables lie on many nodes. ``citus.sql`` says the same to Citus.

A column that distributes is in every key of its table, and in every statement on it: tests hold the schema and the
statements to this.
"""

from typing import NamedTuple


class Group(NamedTuple):
    """Tables whose rows of one value of the column lie on one node."""

    column: str
    tables: tuple[str, ...]


GROUPS = (
    Group(
        "user_id",
        (
            "users",
            "user_keys",
            "user_resources",
            "memory_attachments",
            "file_intents",
            "idempotency_keys",
            "shown_memories",
            "memory_tombstones",
            "memory_overrides",
            "audit_log",
            "sent_messages",
            "outbox",
            "engine_space_names",
            "memory_user_numbers",
        ),
    ),
    Group("folded_id", ("user_names",)),  # a registry: no two users may have names that look alike
    Group("session_id", ("session_owners",)),  # a registry: a session belongs to one user of all
    Group(
        "space_no",
        (
            "engine_spaces",
            "engine_participants",
            "engine_segments",
            "engine_messages",
            "engine_turns",
            "engine_columns",
            "engine_postings",
            "engine_vectors",
            "engine_cases",
        ),
    ),
    Group(
        "user_no",
        (
            "memory_users",
            "memory_entries",
            "memory_counts",
            "memory_sentences",
            "memory_signatures",
            "memory_unindexed",
            "memory_postings",
        ),
    ),
    Group("shard_key", ("thinking_logs",)),
    Group("name", ("token_buckets",)),
)
ON_EVERY_NODE = ("schema_migrations", "leases")
"""Small tables of no user."""

DISTRIBUTED_BY = {table: group.column for group in GROUPS for table in group.tables}
