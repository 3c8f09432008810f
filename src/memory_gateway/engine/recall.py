"""What one search reads of a space, on one snapshot: its arrays, and which of its turns may be seen."""

import json

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from memory_gateway.engine import store
from memory_gateway.engine.columns import POSTING, Columns, Mask
from memory_gateway.engine.filters import Filter, FilteredEpisode
from memory_gateway.engine.memory_ids import Reference, reference_of, skill_reference
from memory_gateway.engine.people import Participant
from memory_gateway.engine.schemas import Caller, MemoryType
from memory_gateway.engine.scoring import Postings
from memory_gateway.storage.port import Reads, Row, Transaction


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


class SpaceView(Struct, frozen=True):
    """The arrays of a space.

    ``follows_deleted``: the turn's vector, made together with the one before it in its segment, carries what the caller
    deleted.
    """

    space_no: int
    columns: Columns
    visible: Mask
    follows_deleted: Mask


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
