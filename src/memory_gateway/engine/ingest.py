"""Messages into segments, turns, records and postings: one transaction, findable by keyword when it commits."""

import json
import struct
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from memory_gateway.engine import cases, store
from memory_gateway.engine.columns import RECORD, block_of, length_and_cues
from memory_gateway.engine.memory_ids import message_id
from memory_gateway.engine.pieces import Piece, PreparedMessage
from memory_gateway.engine.schemas import MOST_MESSAGES
from memory_gateway.engine.segments import OpenSegment, Turn, ends_before, subject, summary
from memory_gateway.storage.lists import with_list
from memory_gateway.storage.port import Row, Transaction

TRANSACTION_PIECES = 256
_LONGEST = 65_535
_PACK_RECORD = struct.Struct("<IIHHqQ")
_PACK_POSTING = struct.Struct("<IH")


class SessionKey(Struct, frozen=True):
    """One session of one caller. ``user_id`` is empty for a bare engine."""

    user_id: str
    app_id: str
    project_id: str
    session_id: str


class Portion(Struct, frozen=True):
    """A message, or the part of a long one that fits into a transaction."""

    prepared: PreparedMessage
    first: int
    end: int
    number: int


def portions(messages: Sequence[PreparedMessage]) -> Iterable[list[Portion]]:
    """The messages cut into transactions of bounded length."""
    batch: list[Portion] = []
    room = TRANSACTION_PIECES
    for number, prepared in enumerate(messages):
        first = 0
        while first < len(prepared.pieces):
            if room == 0:
                yield batch
                batch, room = [], TRANSACTION_PIECES
            end = min(first + room, len(prepared.pieces))
            batch.append(Portion(prepared, first, end, number))
            room -= end - first
            first = end
    if batch:
        yield batch


class _Segment(Struct):
    """A segment touched by this transaction."""

    open: OpenSegment
    senders: dict[str, None]
    owners: dict[str, None]
    is_open: bool = True


class SessionWriter:
    """Writes a batch of one session inside one transaction."""

    def __init__(self, transaction: Transaction, key: SessionKey, now_ms: int) -> None:
        self._transaction = transaction
        self._key = key
        self._now_ms = now_ms
        self._space_no = 0
        self._counts = [0, 0, 0]
        self._current: _Segment | None = None
        self._previous_turn = 0
        self._touched: dict[int, _Segment] = {}
        self._participants: dict[str, tuple[int, str]] = {}
        self._messages: list[dict[str, Any]] = []
        self._turns: list[dict[str, Any]] = []
        self._records: defaultdict[int, bytearray] = defaultdict(bytearray)
        self._postings: defaultdict[int, dict[str, bytes]] = defaultdict(dict)
        self.closed_any = False

    async def write(self, batch: list[Portion]) -> None:
        """Store what is new of the batch; what an earlier try stored is passed over."""
        await self._open_space()
        stored = await self._stored_messages(batch)
        taken = await self._taken_ids(batch)
        for portion in batch:
            await self._write_portion(portion, stored.get(portion.prepared.identity), taken)
        await self._save()

    async def close_current(self) -> bool:
        """Close the session's open segment; False where there is none."""
        await self._open_space()
        if self._current is None:
            return False
        self._touched[self._current.open.segment_no] = self._current
        self._close()
        await self._save()
        return True

    async def _open_space(self) -> None:
        self._space_no = await open_space(self._transaction, self._key)
        counts = await self._transaction.fetch_one(store.SPACE_COUNTS, {"space_no": self._space_no})
        if counts is None:
            raise LookupError("the space vanished inside its own transaction")
        self._counts = list(counts)
        row = await self._transaction.fetch_one(
            store.LAST_SEGMENT, {"space_no": self._space_no, "session_id": self._key.session_id}
        )
        if row is not None:
            self._previous_turn = row[5] + 1
            self._current = _loaded_segment(row) if row[7] else None
        people = await self._transaction.fetch(store.PARTICIPANTS, {"space_no": self._space_no})
        self._participants = {sender_id: (number, name) for number, sender_id, name in people}

    async def _stored_messages(self, batch: list[Portion]) -> dict[str, tuple[int, int]]:
        """Of the messages that an earlier try stored: the number, and how many pieces of it stand."""
        identities = [portion.prepared.identity for portion in batch]
        sql, params = with_list(store.STORED_MESSAGES, "identities", identities)
        place = {"space_no": self._space_no, "session_id": self._key.session_id}
        rows = await self._transaction.fetch(sql, {**place, **params})
        return {identity: (message_no, pieces) for identity, message_no, pieces in rows}

    async def _taken_ids(self, batch: list[Portion]) -> set[str]:
        """EverOS drops a second message with the same id; here it gets another."""
        wanted = [self._message_id(portion, portion.number) for portion in batch]
        sql, params = with_list(store.TAKEN_MESSAGE_IDS, "message_ids", wanted)
        return {taken for (taken,) in await self._transaction.fetch(sql, {"space_no": self._space_no, **params})}

    def _message_id(self, portion: Portion, number: int) -> str:
        return message_id(self._key.session_id, portion.prepared.timestamp_ms, number)

    async def _write_portion(self, portion: Portion, stored: tuple[int, int] | None, taken: set[str]) -> None:
        message_no, done = stored or (self._counts[0], 0)
        if done >= portion.end:
            return
        speaker_no = await self._participant(portion.prepared)
        for piece in portion.prepared.pieces[done : portion.end]:
            self._append(portion.prepared, piece, message_no, speaker_no)
        segment_no = self._turns[-1]["segment_no"]
        place = {"space_no": self._space_no, "message_no": message_no, "segment_no": segment_no}
        if stored is not None:
            await self._transaction.execute(store.EXTEND_MESSAGE, {**place, "pieces_stored": portion.end})
            return
        self._counts[0] += 1
        number = portion.number
        if self._message_id(portion, number) in taken:
            number = MOST_MESSAGES + message_no  # no request has a message of that number, and no two messages have one
        self._messages.append({**place, **self._row(portion), "message_id": self._message_id(portion, number)})

    def _append(self, prepared: PreparedMessage, piece: Piece, message_no: int, speaker_no: int) -> None:
        segment = self._segment_for(prepared, piece)
        turn_no = self._counts[2]
        self._counts[2] += 1
        self._turns.append(
            {
                "space_no": self._space_no,
                "turn_no": turn_no,
                "segment_no": segment.open.segment_no,
                "message_no": message_no,
                "timestamp_ms": prepared.timestamp_ms,
                "speaker": prepared.speaker,
                "role": prepared.message.role,
                "label": piece.label,
                "text": piece.text,
            }
        )
        self._index(prepared, piece, segment.open.segment_no, turn_no, speaker_no)
        self._extend(segment, prepared, piece, turn_no)

    def _index(self, prepared: PreparedMessage, piece: Piece, segment_no: int, turn_no: int, speaker_no: int) -> None:
        block = block_of(turn_no)
        self._records[block] += _PACK_RECORD.pack(
            segment_no,
            self._previous_turn,
            length_and_cues(sum(piece.frequencies.values()), piece.cues),
            speaker_no,
            prepared.timestamp_ms,
            piece.text_hash,
        )
        postings, pack = self._postings[block], _PACK_POSTING.pack
        for term, frequency in piece.frequencies.items():  # a piece is too short for more of a term than fit
            postings[term] = postings.get(term, b"") + pack(turn_no, frequency)

    def _segment_for(self, prepared: PreparedMessage, piece: Piece) -> _Segment:
        in_trajectory = prepared.message.role == "tool" or bool(prepared.message.tool_calls)
        if self._current is not None and ends_before(
            self._current.open, prepared.timestamp_ms, len(piece.text), in_trajectory=in_trajectory
        ):
            self._touched[self._current.open.segment_no] = self._current
            self._close()
        if self._current is None:
            time = prepared.timestamp_ms
            owners = {self._key.user_id: None} if self._key.user_id else {}
            self._current = _Segment(OpenSegment(self._counts[1], time, time, 0, 0, 0, awaits_tools=False), {}, owners)
            self._counts[1] += 1
        self._touched[self._current.open.segment_no] = self._current
        return self._current

    def _close(self) -> None:
        if self._current is not None:
            self._current.is_open = False
            self._current = None
            self.closed_any = True

    def _extend(self, segment: _Segment, prepared: PreparedMessage, piece: Piece, turn_no: int) -> None:
        message, run = prepared.message, segment.open
        run.first_ms = min(run.first_ms, prepared.timestamp_ms)
        run.last_ms = max(run.last_ms, prepared.timestamp_ms)
        run.turn_count += 1
        run.char_count += len(piece.text)
        run.last_turn_no = turn_no
        run.awaits_tools = message.role == "tool" or bool(message.tool_calls)
        segment.senders.setdefault(message.sender_id)
        if message.role == "user":
            segment.owners.setdefault(message.sender_id)
        self._previous_turn = turn_no + 1

    async def _participant(self, prepared: PreparedMessage) -> int:
        sender_id, name = prepared.message.sender_id, prepared.speaker
        known = self._participants.get(sender_id)
        if known is not None and (known[1] == name or prepared.message.sender_name is None):
            return known[0]
        number = known[0] if known else min(len(self._participants), _LONGEST)
        self._participants[sender_id] = (number, name)
        await self._transaction.execute(
            store.SAVE_PARTICIPANT,
            {"space_no": self._space_no, "participant_no": number, "sender_id": sender_id, "name": name},
        )
        return number

    def _row(self, portion: Portion) -> dict[str, Any]:
        prepared, message = portion.prepared, portion.prepared.message
        calls = message.tool_calls
        return {
            "session_id": self._key.session_id,
            "identity": prepared.identity,
            "pieces_stored": portion.end,
            "sender_id": message.sender_id,
            "sender_name": message.sender_name,
            "role": message.role,
            "timestamp_ms": prepared.timestamp_ms,
            "content": prepared.content,
            "tool_calls": json.dumps([_call_json(call) for call in calls], ensure_ascii=False) if calls else None,
            "tool_call_id": message.tool_call_id,
        }

    async def _save(self) -> None:
        space = {"space_no": self._space_no}
        await self._transaction.execute_many(store.SAVE_MESSAGE, self._messages)
        await self._transaction.execute_many(store.SAVE_TURN, self._turns)
        await self._transaction.execute_many(
            store.APPEND_RECORDS,
            ({**space, "block_no": block, "records": bytes(packed)} for block, packed in self._records.items()),
        )
        await self._transaction.execute_many(
            store.APPEND_POSTINGS,
            (
                {**space, "term": term, "block_no": block, "postings": packed}
                for block, postings in self._postings.items()
                for term, packed in sorted(postings.items())
            ),
        )
        for segment in self._touched.values():
            await self._save_segment(segment)
        messages, segments, turns = self._counts
        await self._transaction.execute(
            store.UPDATE_COUNTS,
            {**space, "message_count": messages, "segment_count": segments, "turn_count": turns},
        )

    async def _save_segment(self, segment: _Segment) -> None:
        run = segment.open
        place = {"space_no": self._space_no, "segment_no": run.segment_no}
        turns: list[Turn] = []
        if not segment.is_open:
            turns = [Turn(*row) for row in await self._transaction.fetch(store.TURNS_OF_SEGMENT, place)]
        await self._transaction.execute(
            store.SAVE_SEGMENT,
            {
                **place,
                "session_id": self._key.session_id,
                "is_open": int(segment.is_open),
                "now_ms": self._now_ms,
                "first_ms": run.first_ms,
                "last_ms": run.last_ms,
                "turn_count": run.turn_count,
                "char_count": run.char_count,
                "last_turn_no": run.last_turn_no,
                "awaits_tools": int(run.awaits_tools),
                "senders": json.dumps(list(segment.senders), ensure_ascii=False),
                "owners": json.dumps(list(segment.owners), ensure_ascii=False),
                "subject": subject(turns),
                "summary": summary(turns),
            },
        )
        if not (run.awaits_tools and segment.is_open):
            await save_cases(self._transaction, self._space_no, run.segment_no, run.last_ms)


def _loaded_segment(row: Row) -> _Segment:
    segment_no, first_ms, last_ms, turn_count, char_count, last_turn_no, awaits_tools, _, senders, owners = row
    return _Segment(
        OpenSegment(segment_no, first_ms, last_ms, turn_count, char_count, last_turn_no, bool(awaits_tools)),
        dict.fromkeys(json.loads(senders)),
        dict.fromkeys(json.loads(owners)),
    )


def _call_json(call: Any) -> dict[str, Any]:
    return {
        "id": call.id,
        "type": call.type,
        "function": {"name": call.function.name, "arguments": call.function.arguments},
    }


async def open_space(transaction: Transaction, key: SessionKey) -> int:
    """The number of the caller's space, made when first written."""
    params = {"user_id": key.user_id, "app_id": key.app_id, "project_id": key.project_id}
    row = await transaction.fetch_one(store.FIND_SPACE, params)
    if row is not None:
        return int(row[0])
    ((space_no,),) = await transaction.fetch(store.CREATE_SPACE, params)
    await transaction.execute(store.NAME_SPACE, {**params, "space_no": space_no})
    return int(space_no)


async def save_cases(transaction: Transaction, space_no: int, segment_no: int, last_ms: int) -> None:
    """Make or renew the agent cases of a segment that has tool calls."""
    place = {"space_no": space_no, "segment_no": segment_no}
    rows = await transaction.fetch(store.MESSAGES_OF_SEGMENT, place)
    if not any(row[7] for row in rows):
        return
    messages = [trajectory_message(row) for row in rows]
    taken, answer, intent = cases.steps(messages), cases.closing_answer(messages), cases.task_intent(messages)
    pattern = cases.call_pattern(taken)
    for agent_id in cases.agents(messages):
        founding = await transaction.fetch(store.FOUNDING_CASES, {**place, "agent_id": agent_id, "pattern": pattern})
        alike = (skill_no for skill_no, other in founding if cases.similar_intent(intent, other))
        await transaction.execute(
            store.SAVE_CASE,
            {
                **place,
                "agent_id": agent_id,
                "skill_no": next(alike, segment_no),
                "task_intent": intent,
                "approach": cases.approach(taken, answer),
                "key_insight": cases.key_insight(answer),
                "quality_score": cases.quality_score(taken, answer),
                "pattern": pattern,
                "timestamp_ms": last_ms,
            },
        )


def trajectory_message(row: Row) -> cases.TrajectoryMessage:
    """A row of `store.MESSAGES_OF_SEGMENT` with its content flattened to text."""
    _, _, sender_id, _, role, content, _, tool_calls, tool_call_id = row
    return cases.TrajectoryMessage(
        sender_id, role, flat_text(json.loads(content)), json.loads(tool_calls) if tool_calls else [], tool_call_id
    )


def flat_text(content: Any) -> str:
    """The text of a stored content: a string, or what its items say."""
    if isinstance(content, str):
        return content
    return "\n".join(item.get("parsed_content") or item.get("text") or "" for item in content)


if RECORD.itemsize != _PACK_RECORD.size:
    raise AssertionError("the packed record and its array type differ")
