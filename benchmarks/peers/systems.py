"""What is measured: each system takes the conversations and gives an answer for each of their questions."""

import subprocess
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct

from benchmarks.peers import driving
from benchmarks.peers.environments import MEM0, ROOT, TXTAI, Peer, environ, installed
from benchmarks.recall.conversations import Conversation, unit_tokens
from benchmarks.recall.measure import Settings, measure
from benchmarks.recall.metrics import Answer, verdict
from benchmarks.servers import work_folder
from memory_gateway.embeddings.local_model import DIMENSIONS
from memory_gateway.engine.analysis import STOP_WORDS

MOST_TURNS = 50
_FIRST_TURNS = 10
_LOG_CHARACTERS = 600


class PeerFailed(Exception):
    """The peer's process ended with an error; the message is the end of its log."""


class System(Struct, frozen=True):
    """``answer`` raises `Skipped` where a package cannot be had, and `PeerFailed`."""

    label: str
    answer: Callable[[Sequence[Conversation]], list[Answer]]


def systems(settings: Settings, embeddings_url: str) -> tuple[System, ...]:
    """The engine in a server with these settings, and the peers with the same model behind this URL."""
    mem0, txtai = (peer.requirements[0].replace("==", " ") for peer in (MEM0, TXTAI))
    return (
        System("this engine, hybrid, over HTTP", partial(_own_engine, settings)),
        System(f"{mem0}, infer off, as it runs offline", partial(_peer, MEM0, embeddings_url, keywords=False)),
        System(f"{mem0}, infer off, BM25 handed in", partial(_peer, MEM0, embeddings_url, keywords=True)),
        System(f"{txtai}, hybrid", partial(_peer, TXTAI, embeddings_url, keywords=True)),
    )


def _own_engine(settings: Settings, conversations: Sequence[Conversation]) -> list[Answer]:
    return measure(conversations, ("hybrid",), settings).answers["hybrid"]


def _peer(peer: Peer, embeddings_url: str, conversations: Sequence[Conversation], *, keywords: bool) -> list[Answer]:
    python = installed(peer)
    with work_folder() as folder:
        request: driving.Request = {
            "folder": str(folder),
            "embeddings_url": embeddings_url,
            "dimensions": DIMENSIONS,
            "most_turns": MOST_TURNS,
            "keywords": keywords,
            "stop_words": sorted(STOP_WORDS),
            "conversations": [_texts(conversation) for conversation in conversations],
        }
        lines = _drive(python, peer, request, folder)
    found = (msgspec.json.decode(line, type=driving.Found) for line in lines)
    return [
        answer
        for conversation, one in zip(conversations, found, strict=True)
        for answer in to_answers(conversation, one, peer.name)
    ]


def _texts(conversation: Conversation) -> driving.Conversation:
    return {
        "turns": [f"{message.sender_name}: {message.text}" for message in conversation.messages],
        "questions": [question.text for question in conversation.questions],
    }


def _drive(python: Path, peer: Peer, request: driving.Request, folder: Path) -> list[bytes]:
    """The lines that the peer's driver writes."""
    log = folder / "driver.log"
    with log.open("wb") as errors:
        done = subprocess.run(
            [python, "-m", peer.driver],
            input=msgspec.json.encode(request),
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environ(folder),
            cwd=ROOT,
            check=False,
        )
    if done.returncode != 0:
        raise PeerFailed(log.read_text("utf-8", "replace").strip()[-_LOG_CHARACTERS:])
    return done.stdout.splitlines()


def to_answers(conversation: Conversation, found: driving.Found, method: str) -> Iterator[Answer]:
    """Numbers of turns into units, which in LoCoMo are the same, and these compared with the evidence."""
    units = [message.unit for message in conversation.messages]
    session_of = {message.unit: message.session_id for message in conversation.messages}
    tokens = unit_tokens(conversation.messages)
    milliseconds = 1000 * found["search_seconds"] / len(conversation.questions)
    for question, numbers in zip(conversation.questions, found["rankings"], strict=True):
        ranking = [units[number] for number in numbers]
        yield Answer(
            user_id=conversation.user_id,
            part=conversation.part,
            method=method,
            question=question,
            verdict=verdict(ranking, question.evidence, session_of, tokens),
            reply_tokens=sum(tokens[unit] for unit in ranking),
            ten_tokens=sum(tokens[unit] for unit in ranking[:_FIRST_TURNS]),
            milliseconds=milliseconds,
        )
