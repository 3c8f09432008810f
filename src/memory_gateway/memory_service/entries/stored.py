"""An entry as it lies in the database: its row, and what is derived from its text."""

from typing import Any

import msgspec
from msgspec import Struct

from memory_gateway.kit.text import fold
from memory_gateway.memory_service.entries.owners import entry_no_of, user_no_of
from memory_gateway.memory_service.entries.schemas import MemoryEntry
from memory_gateway.memory_service.entries.sentences import key_hash, sentence_key, sentence_keys
from memory_gateway.memory_service.entries.signatures import Words, widest_signature
from memory_gateway.memory_service.entries.similarity import Bigrams, bigrams
from memory_gateway.storage.port import Row

_keywords = msgspec.json.Decoder(list[str])


class StoredEntry(Struct, frozen=True):
    """A memory with what only this room knows of it. ``bigram_count`` says where its signature lies."""

    memory: MemoryEntry
    entry_key: int
    summary_derived: bool
    bigram_count: int

    @property
    def entry_no(self) -> int:
        return entry_no_of(self.entry_key)

    @property
    def user_no(self) -> int:
        return user_no_of(self.entry_key)


class Digest(Struct, frozen=True):
    """How a content is known again: by its sentences and by its bigrams, and these by their widest signature."""

    sentence_hashes: frozenset[int]
    bigrams: Bigrams
    signature: Words


def digest_of(content: str) -> Digest:
    """Read a content once for all that is derived from it."""
    pairs = bigrams(content)
    return Digest(sentence_hashes(content), pairs, widest_signature(pairs))


def sentence_hashes(content: str) -> frozenset[int]:
    """What the content's sentences are looked up by."""
    return frozenset(map(key_hash, sentence_keys(content)))


def memory_of(user_id: str, row: Row) -> MemoryEntry:
    """From the first columns that `store` selects of an entry."""
    values = (row[0], user_id, *row[1:6], _keywords.decode(row[6]), *row[7:14])
    return MemoryEntry(*values)


def stored_entry(user_id: str, row: Row) -> StoredEntry:
    """From all columns that `store` selects of an entry."""
    return StoredEntry(memory_of(user_id, row), row[14], bool(row[15]), row[16])


def columns(memory: MemoryEntry) -> dict[str, Any]:
    """The row's columns that follow from the memory alone."""
    return {
        **msgspec.structs.asdict(memory),
        "keywords": msgspec.json.encode(memory.keywords).decode(),
        "content_hash": key_hash(sentence_key(memory.content)),
        "folded": searchable(memory),
    }


def searchable(memory: MemoryEntry) -> str:
    """All that a query looks at, folded, in lines that say nothing twice."""
    content = fold(memory.content)
    parts = dict.fromkeys(map(fold, (memory.summary, *memory.keywords)))
    return "\n".join([content, *(part for part in parts if part not in content)])
