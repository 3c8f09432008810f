"""What one search reads of a space, on one snapshot: its arrays, and which of its turns may be seen."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from memory_gateway.engine import store
from memory_gateway.engine.columns import POSTING, Columns, Mask, Turns, after_in_segment
from memory_gateway.engine.cues import QUESTION, TIMED
from memory_gateway.engine.filters import Filter, FilteredEpisode
from memory_gateway.engine.memory_ids import Reference, reference_of, skill_reference
from memory_gateway.engine.people import Names, Participant, names_of
from memory_gateway.engine.schemas import Caller, MemoryType
from memory_gateway.engine.scoring import Evidence, Norms, Postings, evidence_of, neighbour, norms_of, seen_term
from memory_gateway.storage.port import Reads, Row, Transaction

_TURN_BYTES = 128  # what a view and the columns under it hold of a turn
_TERM_BYTES = 1_000  # of objects around the arrays of a term
_NAME_BYTES = 500
_MOST_EVIDENCE_BYTES = 16 << 20


class Segment(Struct, frozen=True):
    """A stored segment. ``senders`` and ``owners`` are JSON lists."""

    segment_no: int
    session_id: str
    is_open: int
    created_ms: int
    updated_ms: int
    last_ms: int
    senders: str
    owners: str
    subject: str
    summary: str

    def as_filtered(self) -> FilteredEpisode:
        """What a filter may ask of it."""
        return FilteredEpisode(
            self.session_id, self.last_ms, frozenset(json.loads(self.senders)), f"mc_{self.segment_no + 1:08d}"
        )


class Concealed(Struct, frozen=True):
    """What the caller deleted: segments (those of deleted sessions too), single messages with their turns, skills.

    Of an agent's memories only those are hidden that were made from deleted words or deleted themselves: a deleted
    case or skill of one agent leaves what another agent learned from the same words.
    """

    segments: frozenset[int] = frozenset()
    turns: frozenset[int] = frozenset()
    messages: frozenset[int] = frozenset()
    skills: frozenset[int] = frozenset()


NOTHING_CONCEALED = Concealed()


class SpaceView:
    """The arrays of a space, which of its turns may be seen, and what follows from that whatever is asked.

    ``follows_deleted``: the turn's vector, made together with the one before it in its segment, carries what the caller
    deleted. Searches of an unchanged space share a view: nobody may write to its arrays. ``on_growth`` is called
    whenever its size has changed.
    """

    def __init__(self, space_no: int, columns: Columns, visible: Mask, follows_deleted: Mask) -> None:
        self.space_no = space_no
        self.columns = columns
        self.visible = visible
        self.follows_deleted = follows_deleted
        self.is_empty = not visible.any()
        self.on_growth: Callable[[], None] | None = None
        self._names: Names | None = None
        self._evidence: dict[str, Evidence] = {}
        self._evidence_bytes = 0
        for array in (visible, follows_deleted):
            array.flags.writeable = False

    @property
    def size(self) -> int:
        """In bytes, about."""
        names = 0 if self._names is None else _NAME_BYTES * len(self._names)
        return _TURN_BYTES * len(self.columns) + self._evidence_bytes + names

    @cached_property
    def norms(self) -> Norms:
        return norms_of(self.columns.lengths, self.columns.links, self.visible)

    @cached_property
    def after(self) -> Turns:
        """The turns after each in its segment."""
        return after_in_segment(self.columns.links)

    @cached_property
    def questions(self) -> Mask:
        return (self.columns.cues & QUESTION) > 0

    @cached_property
    def answers(self) -> Mask:
        """The turns that follow a question."""
        return neighbour((self.questions & self.visible).astype(np.float64), self.columns.links.previous) > 0

    @cached_property
    def timed(self) -> Mask:
        """The turns that hold a time expression."""
        return (self.columns.cues & TIMED) > 0

    @cached_property
    def nothing(self) -> Mask:
        """No turn at all."""
        return np.zeros(len(self.columns), dtype=bool)

    @cached_property
    def years(self) -> range:
        """From the first turn to the last."""
        seen = self.columns.times[self.visible]
        return range(_year(int(seen.min())), _year(int(seen.max())) + 1)

    async def names(self, transaction: Transaction) -> Names:
        """Of those who speak in what may be seen."""
        if self._names is None:
            seen = set(np.flatnonzero(np.bincount(self.columns.speakers[self.visible])).tolist())
            everybody = await load_participants(transaction, self.space_no) if seen else []
            self._names = names_of(one for one in everybody if one.participant_no in seen)
            self._has_grown()
        return self._names

    async def evidence(self, transaction: Transaction, term: str) -> Evidence:
        """What the term says of the turns that may be seen."""
        known = self._evidence.get(term)
        if known is None:
            postings = await load_postings(transaction, self.space_no, term)
            known = evidence_of(seen_term(postings, self.visible), self.norms, self.columns.links)
            if self._evidence_bytes > _MOST_EVIDENCE_BYTES:
                self._evidence, self._evidence_bytes = {}, 0
            self._evidence[term] = known
            self._evidence_bytes += known.size + _TERM_BYTES
            self._has_grown()
        return known

    def _has_grown(self) -> None:
        if self.on_growth is not None:
            self.on_growth()


def concealed_elsewhere(space_no: int, caller: Caller, agent_id: str) -> Concealed:
    """As `concealed_of`, in another caller's space: the agent's shared cases and skills that this caller deleted."""
    return Concealed(
        segments=_numbers(_deleted_cases(caller, agent_id), space_no),
        skills=_numbers(_deleted_skills(caller, agent_id), space_no),
    )


def _deleted(caller: Caller, memory_type: MemoryType) -> list[str]:
    return [key.memory_id for key in caller.hidden if key.memory_type == memory_type]


def _deleted_cases(caller: Caller, agent_id: str | None) -> list[Reference | None]:
    return [reference_of(identifier, "ac", agent_id) for identifier in _deleted(caller, "agent_case")]


def _deleted_skills(caller: Caller, agent_id: str) -> list[Reference | None]:
    return [skill_reference(identifier, agent_id) for identifier in _deleted(caller, "agent_skill")]


def _numbers(references: list[Reference | None], space_no: int | None) -> frozenset[int]:
    return frozenset(one.number for one in references if one is not None and one.space_no == space_no)


async def concealed_of(
    transaction: Transaction, space_no: int, caller: Caller, agent_id: str | None = None
) -> Concealed:
    """Turn the caller's deleted memories into what they stand on, in the caller's own space.

    ``agent_id``: for this agent's memories; without it for the words, which every deleted case hides.
    """
    if not caller.hidden and not caller.hidden_sessions:
        return NOTHING_CONCEALED
    episodes = [reference_of(identifier, "ep") for identifier in _deleted(caller, "episode")]
    segments = set(_numbers([*episodes, *_deleted_cases(caller, agent_id)], None))
    for session_id in caller.hidden_sessions:
        params = {"space_no": space_no, "session_id": session_id}
        segments.update(number for (number,) in await transaction.fetch(store.SEGMENT_NUMBERS_OF_SESSION, params))
    turns: set[int] = set()
    messages: set[int] = set()
    for key in caller.hidden:
        if key.memory_type != "unprocessed_message":
            continue
        row = await transaction.fetch_one(store.MESSAGE_BY_ID, {"space_no": space_no, "id": key.memory_id})
        if row is not None:
            messages.add(row[0])
            params = {"space_no": space_no, "message_no": row[0]}
            turns.update(turn for (turn,) in await transaction.fetch(store.TURN_NUMBERS_OF_MESSAGE, params))
    skills = frozenset[int]() if agent_id is None else _numbers(_deleted_skills(caller, agent_id), None)
    return Concealed(frozenset(segments), frozenset(turns), frozenset(messages), skills)


async def segments_within(
    transaction: Transaction, space_no: int, wanted: Filter | None, concealed: Concealed
) -> list[Segment]:
    """The segments that the filter keeps and the caller has not deleted."""
    rows: list[Row] = []
    if wanted is not None and wanted.sessions is not None:
        for session_id in sorted(wanted.sessions):
            params = {"space_no": space_no, "session_id": session_id}
            rows += await transaction.fetch(store.SEGMENTS_OF_SESSION, params)
    else:
        rows = await transaction.fetch(store.SEGMENTS, {"space_no": space_no})
    found = (Segment(*row) for row in rows)
    return [
        segment
        for segment in found
        if segment.segment_no not in concealed.segments and (wanted is None or wanted.test(segment.as_filtered()))
    ]


def view_of(space_no: int, columns: Columns, kept: NDArray[np.int64] | None, concealed: Concealed) -> SpaceView:
    """``kept``: the segments that may be seen, None for all."""
    visible = columns.lengths > 0  # a message that says nothing answers nothing
    if kept is not None and len(columns):
        visible &= np.isin(columns.links.segments, kept)
    deleted = np.zeros(len(columns), dtype=bool)
    if concealed.segments:
        deleted = np.isin(columns.links.segments, list(concealed.segments))
    if concealed.turns:
        deleted[list(concealed.turns)] = True
    links = columns.links
    follows_deleted = np.append(deleted, False)[links.previous]  # -1, for none, takes the last place
    follows_deleted &= np.append(links.segments, -1)[links.previous] == links.segments
    return SpaceView(space_no, columns, visible & ~deleted, follows_deleted)


async def load_participants(reads: Reads, space_no: int) -> list[Participant]:
    """Everybody who ever spoke in the space."""
    return [Participant(*row) for row in await reads.fetch(store.PARTICIPANTS, {"space_no": space_no})]


async def load_postings(transaction: Transaction, space_no: int, term: str) -> Postings:
    """The (turn, frequency) records of a term, empty where no turn holds it."""
    blocks = await transaction.fetch(store.POSTINGS, {"space_no": space_no, "term": term})
    return np.frombuffer(b"".join(block for (block,) in blocks), dtype=POSTING)


def _year(epoch_ms: int) -> int:
    return datetime.fromtimestamp(epoch_ms / 1000, UTC).year
