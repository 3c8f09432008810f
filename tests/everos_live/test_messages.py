"""Messages that a real EverOS would take for the same, would remember twice, or is slow or blind to."""

import psutil
import pytest

from memory_gateway.kit.clock import system_clock
from tests.everos_live.conftest import Newcomer
from tests.everos_live.people import Settle, chat, flush, said, search, tell
from tests.everos_live.server import EverosServer

pytestmark = pytest.mark.live

ANIMALS = ["The cat is black.", "The dog is white.", "The owl is grey."]


def test_messages_of_the_same_millisecond_are_all_kept(newcomer: Newcomer, settle: Settle) -> None:
    sol, now = newcomer("sol"), system_clock()
    for text in ANIMALS:
        assert sol.http.post("/memories/add", json=said(sol, text, now)).status_code == 200
    waiting = search(sol, "animals", scope="current_chat", conversation_id=chat(sol))
    assert [one["text"] for one in waiting if one["memory_type"] == "unprocessed_message"] == ANIMALS
    flush(sol)
    settle()
    (found,) = search(sol, "animals")
    assert [text for text in ANIMALS if text in found["text"]] == ANIMALS


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "the-ferry"}], ids=["alone", "with a key"])
def test_an_add_repeated_after_extraction_is_one_memory(
    newcomer: Newcomer, settle: Settle, headers: dict[str, str]
) -> None:
    tim = newcomer(f"tim-{len(headers)}")
    body = said(tim, "The ferry leaves at nine.")
    for _ in range(3):
        assert tim.http.post("/memories/add", json=body, headers=headers).status_code == 200
        assert tim.http.post("/memories/flush", json={"conversation_id": chat(tim)}).status_code == 200
        settle()
    assert len(search(tim, "When does the ferry leave?")) == 1


def test_a_query_of_thousands_of_words_is_no_more_work_for_it_than_one_of_hundreds(
    live_everos: EverosServer, newcomer: Newcomer, settle: Settle
) -> None:
    uma = newcomer("uma")
    tell(uma, "The kettle is broken.")
    settle()

    def seconds_so_far() -> float:
        return float(psutil.Process(live_everos.pid).cpu_times().user)

    def work(words: int) -> float:
        before = seconds_so_far()
        search(uma, "ox " * words, method="keyword")
        return seconds_so_far() - before

    work(1)  # what is made ready at the first search does not count
    assert work(2_600) < 2 * work(500) + 1
