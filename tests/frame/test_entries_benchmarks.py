"""The stores that the benchmarks of memory entries measure are what they say."""

from itertools import islice
from pathlib import Path

import pytest

from benchmarks import entries_store, servers
from benchmarks.entries_query import telling_words
from benchmarks.entries_store import USER, Wanted, copied_store, open_entries, sentences, users_sentences
from memory_gateway.memory_service.entries.schemas import EntryQuery, NewEntry
from memory_gateway.memory_service.entries.similarity import THRESHOLD, bigrams, similarity


def test_sentences_are_the_same_each_time_and_bilingual() -> None:
    first, again, other = (list(islice(sentences(seed), 40)) for seed in (1, 1, 2))
    assert first == again != other
    assert len(set(first)) == 40
    assert {sentence.isascii() for sentence in first} == {True, False}


def test_copies_are_alike_to_the_sentence_before() -> None:
    said = list(users_sentences(Wanted(30, copies=10)))
    alike = [
        number for number in range(1, 30) if similarity(bigrams(said[number - 1]), bigrams(said[number])) >= THRESHOLD
    ]
    assert alike == [9, 19, 29]


async def test_a_store_holds_what_creates_would_have_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (entries_store, servers):
        monkeypatch.setattr(module, "CACHE", tmp_path)
    await entries_store.make(Wanted(520, strangers=1030))
    with copied_store(Wanted(520, strangers=1030)) as folder:
        async with open_entries(folder) as entries:
            said = list(users_sentences(Wanted(520)))
            assert (await entries.list(USER, limit=1))[1] == 520
            assert (await entries.list("stranger-0"))[1] == 1000
            assert (await entries.list("stranger-1"))[1] == 30
            assert (await entries.create(NewEntry(user_id=USER, content=said[7]))).merged
            for words in telling_words(520).values():
                found, total = await entries.query(EntryQuery(user_id=USER, query_text=words[0]))
                assert total == len([text for text in said if words[0] in text.lower()])
                assert found
