"""The project's own bilingual recall set, asked of a real engine: see recall_set/README.md for its format."""

import datetime as dt
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Literal, get_args

import msgspec
import pytest
from msgspec import Struct

from memory_gateway.embeddings.cosine_scale import CosineScales
from memory_gateway.embeddings.local import LocalEmbedder
from memory_gateway.embeddings.local_model import DIMENSIONS
from memory_gateway.engine.analysis import content_terms
from memory_gateway.engine.schemas import FunctionCall, Message, Method, Role, SearchReply, ToolCall
from memory_gateway.engine.segments import clock_time
from memory_gateway.engine.vectors import VectorWorker
from memory_gateway.storage.leases import Leases
from tests.engine.conftest import Talk, open_talk

Kind = Literal["word", "glued", "name", "date", "paraphrase", "cross-language", "multi", "tool", "exact"]

FOLDER = Path(__file__).parent / "recall_set"
CUT = 5
ALWAYS_FOUND = frozenset({"word", "glued", "exact"})
# Points of turn recall@5: a ranking that loses more than it wins shows here
KEYWORD_FLOOR = 66.0
HYBRID_FLOOR = 88.0


class Person(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    role: Role


class Turn(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Who said what, and the tool that was called with it."""

    sender: str
    text: str
    tool: str | None = None
    arguments: str = "{}"


class Session(Struct, frozen=True, forbid_unknown_fields=True):
    """Turns a minute apart, from ``at`` on."""

    at: dt.datetime
    turns: list[Turn]

    def time_ms(self, number: int) -> int:
        return round(self.at.timestamp() * 1000) + number * 60_000


class Question(Struct, frozen=True, forbid_unknown_fields=True):
    asks: str
    evidence: list[str]
    language: Literal["zh", "en", "mixed"]
    now: dt.datetime | None = None
    agent: str | None = None


class Conversation(Struct, frozen=True, forbid_unknown_fields=True):
    """One owner's file. A turn's id is its session and its place there, from 1: ``0302/1``."""

    user: str
    now: dt.datetime
    people: dict[str, Person]
    sessions: dict[str, Session]
    questions: dict[Kind, list[Question]]

    def turns(self) -> Iterator[tuple[str, int, Turn]]:
        """Each turn with its id and time."""
        for session_id, session in self.sessions.items():
            for number, turn in enumerate(session.turns):
                yield f"{session_id}/{number + 1}", session.time_ms(number), turn

    def asked(self) -> Iterator[tuple[Kind, Question]]:
        for kind, questions in self.questions.items():
            for question in questions:
                yield kind, question


CONVERSATIONS = [msgspec.toml.decode(path.read_bytes(), type=Conversation) for path in sorted(FOLDER.glob("*.toml"))]


def messages(conversation: Conversation, session_id: str) -> Iterator[Message]:
    """The session as a client sends it; the answer of a tool is to the call before it."""
    session = conversation.sessions[session_id]
    call_id = None
    for number, turn in enumerate(session.turns):
        calls = None
        if turn.tool is not None:
            call_id = f"{session_id}-{number}"
            calls = [ToolCall(id=call_id, function=FunctionCall(turn.tool, turn.arguments))]
        person = conversation.people.get(turn.sender, Person(turn.sender, "tool"))
        yield Message(
            sender_id=turn.sender,
            role=person.role,
            timestamp=session.time_ms(number),
            content=turn.text,
            sender_name=person.name,
            tool_calls=calls,
            tool_call_id=call_id if person.role == "tool" else None,
        )


async def tell(talk: Talk) -> None:
    """Everybody's sessions; those of different owners bear the same ids."""
    for conversation in CONVERSATIONS:
        for session_id in conversation.sessions:
            await talk.add(*messages(conversation, session_id), user=conversation.user, session=session_id)


async def ask(talk: Talk, owner: Conversation, question: Question, method: Method) -> SearchReply:
    """As the owner, at the time at which the question is put."""
    talk.clock.now_ms = round((question.now or owner.now).timestamp() * 1000)
    return await talk.search(question.asks, user=owner.user, method=method, top_k=10)


def turn_order(owner: Conversation, reply: SearchReply) -> list[str]:
    """Turn ids as a reader meets them: all facts, best first, then what else the episodes hold, in their order.

    No two turns of an owner bear the same time, so the time that a line begins with tells the turn.
    """
    by_time = {f"[{clock_time(time_ms)}]": turn_id for turn_id, time_ms, _ in owner.turns()}
    facts = sorted((fact for e in reply.episodes for fact in e["atomic_facts"]), key=lambda fact: -fact["score"])
    lines = [fact["content"] for fact in facts]
    lines += [line for e in reply.episodes for line in e["episode"].split("\n") if line.startswith("[")]
    return list(dict.fromkeys(by_time[line[: line.index("]") + 1]] for line in lines))


class Outcome(Struct, frozen=True):
    kind: Kind
    owner: str
    question: Question
    lost: list[str]

    @property
    def recall(self) -> float:
        return 100 * (1 - len(self.lost) / len(self.question.evidence))


async def outcomes(talk: Talk, method: Method) -> list[Outcome]:
    found = []
    for owner in CONVERSATIONS:
        for kind, question in owner.asked():
            first = turn_order(owner, await ask(talk, owner, question, method))[:CUT]
            lost = [turn_id for turn_id in question.evidence if turn_id not in first]
            found.append(Outcome(kind, owner.user, question, lost))
    return found


def recall(found: Sequence[Outcome]) -> float:
    """The mean over the questions, in points."""
    return sum(outcome.recall for outcome in found) / len(found)


def table(found: Sequence[Outcome]) -> str:
    """Recall of each kind, and under it the questions that lost evidence."""
    kinds: defaultdict[Kind, list[Outcome]] = defaultdict(list)
    for outcome in found:
        kinds[outcome.kind].append(outcome)
    lines = [f"recall@{CUT} {recall(found):.1f} over {len(found)} questions"]
    for kind, of_kind in kinds.items():
        lines.append(f"{kind:<15} {recall(of_kind):5.1f} ({len(of_kind)})")
        lines += [f"  {one.owner:<8} lost {' '.join(one.lost):<22} {one.question.asks}" for one in of_kind if one.lost]
    return "\n".join(lines)


def check(found: Sequence[Outcome], floor: float) -> None:
    assert recall(found) >= floor, table(found)
    assert not [outcome for outcome in found if outcome.lost and outcome.kind in ALWAYS_FOUND], table(found)


@pytest.fixture
async def embedder(model_folder: Path) -> AsyncIterator[LocalEmbedder]:
    embedder = LocalEmbedder(lambda: model_folder, model=model_folder.name, dimensions=DIMENSIONS)
    yield embedder
    await embedder.close()


async def test_keywords_alone_find_what_is_asked_for(talk: Talk) -> None:
    await tell(talk)
    check(await outcomes(talk, "keyword"), KEYWORD_FLOOR)


@pytest.mark.slow
async def test_with_the_local_model_more_is_found(tmp_path: Path, embedder: LocalEmbedder) -> None:
    async with open_talk(tmp_path, embedder) as talk:
        await tell(talk)
        leases = Leases(talk.database, talk.clock, "test")
        await VectorWorker(talk.database, embedder, leases, CosineScales(embedder)).catch_up()
        check(await outcomes(talk, "hybrid"), HYBRID_FLOOR)


async def test_an_agent_remembers_the_work_that_a_question_is_about(talk: Talk) -> None:
    await tell(talk)
    for owner in CONVERSATIONS:
        for question in owner.questions.get("tool", []):
            assert question.agent is not None
            reply = await talk.search(question.asks, user=owner.user, agent_id=question.agent, top_k=2)
            worked_on = {turn_id.split("/")[0] for turn_id in question.evidence}
            assert worked_on <= {case["session_id"] for case in reply.agent_cases}, question.asks


async def test_nobodys_question_is_answered_with_anothers_words(talk: Talk) -> None:
    await tell(talk)
    said = {owner.user: {turn.text for _, _, turn in owner.turns()} for owner in CONVERSATIONS}
    questions = [question for owner in CONVERSATIONS for _, question in owner.asked()]
    for owner in CONVERSATIONS:
        foreign = set().union(*said.values()) - said[owner.user]
        for question in questions:
            reply = msgspec.json.encode(await ask(talk, owner, question, "keyword")).decode()
            assert not [text for text in foreign if text in reply], question.asks


def test_the_set_is_large_enough_and_its_evidence_exists() -> None:
    turns = {(owner.user, turn_id) for owner in CONVERSATIONS for turn_id, _, _ in owner.turns()}
    times = [time_ms for owner in CONVERSATIONS for _, time_ms, _ in owner.turns()]
    asked = [(owner.user, kind, question) for owner in CONVERSATIONS for kind, question in owner.asked()]
    assert len(turns) >= 120
    assert len(asked) >= 60
    assert max(times) - min(times) >= dt.timedelta(weeks=5).total_seconds() * 1000
    assert {kind for _, kind, _ in asked} == set(get_args(Kind))
    assert {(user, turn_id) for user, _, question in asked for turn_id in question.evidence} <= turns


def test_questions_are_of_the_kind_they_stand_under() -> None:
    for owner in CONVERSATIONS:
        texts = {turn_id: turn.text for turn_id, _, turn in owner.turns()}
        for question in owner.questions.get("paraphrase", []):
            words = {word for turn_id in question.evidence for word in content_terms(texts[turn_id])}
            assert not words & set(content_terms(question.asks)), question.asks
        assert [question.asks for question in owner.questions.get("word", []) if len(question.asks) != 2] == []
        assert all(question.agent in owner.people for question in owner.questions.get("tool", []))
        several = [{turn_id.split("/")[0] for turn_id in one.evidence} for one in owner.questions.get("multi", [])]
        assert all(len(sessions) > 1 for sessions in several)
