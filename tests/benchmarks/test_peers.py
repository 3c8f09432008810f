"""The benchmark of peers tells them texts only, reads their rankings, and skips what cannot be had."""

import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from benchmarks import embedding_server
from benchmarks.peers import driving, environments
from benchmarks.peers.__main__ import main
from benchmarks.peers.environments import Peer, environ, installed
from benchmarks.peers.systems import to_answers
from benchmarks.recall.conversations import FOLDER_VARIABLE, Conversation, Message, Question
from benchmarks.recall.metrics import recall, reciprocal_rank
from benchmarks.report import Skipped


class Backwards:
    """A store that finds the last turn first."""

    def __init__(self, request: driving.Request, number: int) -> None:
        self._turns: list[str] = []

    def add(self, turns: Sequence[str]) -> None:
        print("a peer that talks")
        self._turns.extend(turns)

    def search(self, question: str, most: int) -> list[int]:
        return [*range(len(self._turns))][::-1][:most]


def test_a_driver_writes_a_line_a_conversation_whatever_the_peer_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    request: driving.Request = {
        "folder": "",
        "embeddings_url": "",
        "dimensions": 3,
        "most_turns": 2,
        "keywords": False,
        "stop_words": [],
        "conversations": [
            {"turns": ["Ann: a", "Bo: b", "Ann: c"], "questions": ["Who?", "Why?"]},
            {"turns": ["Ann: d"], "questions": ["When?"]},
        ],
    }
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(request)))
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(sys, "stdout", written := io.StringIO())
    driving.drive(Backwards)
    assert [json.loads(line)["rankings"] for line in written.getvalue().splitlines()] == [[[2, 1], [2, 1]], [[0]]]


def test_the_rankings_of_a_peer_are_measured_by_the_evidence() -> None:
    said = tuple(Message(f"s{n}", "Ann", "Ann", "user", 60_000 * n, f"word {n}", unit=n) for n in range(3))
    asked = (Question("Who?", (0, 1), 4), Question("Why?", (2,), 1))
    found: driving.Found = {"add_seconds": 1.0, "search_seconds": 0.4, "rankings": [[2, 1], [2, 0]]}
    first, second = to_answers(Conversation("conv-1", "test", said, asked), found, "mem0")
    assert (first.verdict.ranks, second.verdict.ranks) == ((None, 2), (1,))
    assert (recall([first, second], 5), reciprocal_rank([first, second])) == (0.75, 0.75)
    assert (first.part, first.method, first.milliseconds) == ("test", "mem0", 200.0)


def test_the_embedding_server_knows_questions_and_makes_a_vector_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    class Model:
        def __init__(self, folder: Path) -> None: ...

        def query(self, text: str) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
            made.append(f"query {text}")
            return np.array([1, 0], np.float32)

        def passage(self, text: str) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
            made.append(f"passage {text}")
            return np.array([0, 1], np.float32)

    monkeypatch.setattr("memory_gateway.embeddings.onnx_model.OnnxModel", Model)
    with embedding_server.serving(Path(), ["Who  came?\n"]) as url:
        assert driving.embed(url, [" Who came?", "Ann: I did.", "Ann: I did."]) == [[1, 0], [0, 1], [0, 1]]
    assert made == ["query Who came?", "passage Ann: I did."]


def test_a_peer_without_its_wheel_is_skipped_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(environments, "CACHE", tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    with pytest.raises(Skipped, match=r"^nowhere: No matching distribution found for no-such-peer==1\.0"):
        installed(Peer("nowhere", ("no-such-peer==1.0",)))


def test_an_installed_peer_is_not_installed_again_but_for_another_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(environments, "CACHE", tmp_path)
    folder = tmp_path / "peers" / "near"
    folder.mkdir(parents=True)
    (folder / ".installed").write_text("near==1.0")
    assert installed(Peer("near", ("near==1.0",))) == folder / "bin" / "python"
    monkeypatch.setattr(environments, "create_environment", lambda _: pytest.fail("made anew"))
    with pytest.raises(pytest.fail.Exception, match="made anew"):
        installed(Peer("near", ("near==1.1",)))


def test_drivers_reach_no_hub_and_send_no_telemetry(tmp_path: Path) -> None:
    given = environ(tmp_path)
    assert {name: given[name] for name in ("HF_HUB_OFFLINE", "MEM0_TELEMETRY", "ANONYMIZED_TELEMETRY", "HOME")} == {
        "HF_HUB_OFFLINE": "1",
        "MEM0_TELEMETRY": "False",
        "ANONYMIZED_TELEMETRY": "False",
        "HOME": str(tmp_path),
    }


def test_without_the_data_set_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    with pytest.raises(Skipped, match=r"^locomo/locomo10\.json is not there"):
        main(None)
