"""All SQL of the engine. Every statement names the space, so one caller's memory is never read with another's."""

FIND_SPACE = """
SELECT space_no FROM engine_space_names WHERE user_id = :user_id AND app_id = :app_id AND project_id = :project_id
"""
CREATE_SPACE = """
INSERT INTO engine_spaces (user_id, app_id, project_id) VALUES (:user_id, :app_id, :project_id) RETURNING space_no
"""
NAME_SPACE = """
INSERT INTO engine_space_names (user_id, app_id, project_id, space_no)
VALUES (:user_id, :app_id, :project_id, :space_no)
"""
SPACE_COUNTS = """
SELECT message_count, segment_count, turn_count FROM engine_spaces WHERE space_no = :space_no
"""
UPDATE_COUNTS = """
UPDATE engine_spaces SET message_count = :message_count, segment_count = :segment_count, turn_count = :turn_count
WHERE space_no = :space_no
"""
SPACES_OF_USER = (
    "SELECT space_no, app_id, project_id FROM engine_space_names WHERE user_id = :user_id ORDER BY space_no"
)
SPACES_OF_AGENT = """
SELECT DISTINCT s.space_no FROM engine_cases c JOIN engine_spaces s ON s.space_no = c.space_no
WHERE c.agent_id = :agent_id AND s.app_id = :app_id AND s.project_id = :project_id ORDER BY s.space_no
"""

PARTICIPANTS = """
SELECT participant_no, sender_id, name FROM engine_participants WHERE space_no = :space_no ORDER BY participant_no
"""
SAVE_PARTICIPANT = """
INSERT INTO engine_participants (space_no, participant_no, sender_id, name)
VALUES (:space_no, :participant_no, :sender_id, :name)
ON CONFLICT (space_no, sender_id) DO UPDATE SET name = excluded.name
"""

LAST_SEGMENT = """
SELECT segment_no, first_ms, last_ms, turn_count, char_count, last_turn_no, awaits_tools, is_open, senders, owners
FROM engine_segments WHERE space_no = :space_no AND session_id = :session_id ORDER BY segment_no DESC LIMIT 1
"""
SAVE_SEGMENT = """
INSERT INTO engine_segments (
  space_no, segment_no, session_id, is_open, created_ms, updated_ms, first_ms, last_ms, turn_count, char_count,
  last_turn_no, awaits_tools, senders, owners, subject, summary
) VALUES (
  :space_no, :segment_no, :session_id, :is_open, :now_ms, :now_ms, :first_ms, :last_ms, :turn_count, :char_count,
  :last_turn_no, :awaits_tools, :senders, :owners, :subject, :summary
) ON CONFLICT (space_no, segment_no) DO UPDATE SET
  is_open = excluded.is_open, updated_ms = excluded.updated_ms, first_ms = excluded.first_ms,
  last_ms = excluded.last_ms, turn_count = excluded.turn_count, char_count = excluded.char_count,
  last_turn_no = excluded.last_turn_no, awaits_tools = excluded.awaits_tools, senders = excluded.senders,
  owners = excluded.owners, subject = excluded.subject, summary = excluded.summary
"""
CLOSE_SEGMENT = """
UPDATE engine_segments SET is_open = 0 WHERE space_no = :space_no AND segment_no = :segment_no AND is_open = 1
"""
SEGMENTS = """
SELECT segment_no, session_id, is_open, created_ms, updated_ms, last_ms, senders, owners, subject, summary
FROM engine_segments WHERE space_no = :space_no ORDER BY segment_no
"""
SEGMENTS_OF_SESSION = """
SELECT segment_no, session_id, is_open, created_ms, updated_ms, last_ms, senders, owners, subject, summary
FROM engine_segments WHERE space_no = :space_no AND session_id = :session_id ORDER BY segment_no
"""
SEGMENTS_NUMBERED = """
SELECT segment_no, session_id, is_open, created_ms, updated_ms, last_ms, senders, owners, subject, summary
FROM engine_segments WHERE space_no = :space_no AND segment_no IN (:segment_nos)
"""
SEGMENT_NUMBERS_OF_SESSION = """
SELECT segment_no FROM engine_segments WHERE space_no = :space_no AND session_id = :session_id
"""

STORED_MESSAGES = """
SELECT identity, message_no, pieces_stored FROM engine_messages
WHERE space_no = :space_no AND session_id = :session_id AND identity IN (:identities)
"""
TAKEN_MESSAGE_IDS = """
SELECT message_id FROM engine_messages WHERE space_no = :space_no AND message_id IN (:message_ids)
"""
SAVE_MESSAGE = """
INSERT INTO engine_messages (
  space_no, message_no, session_id, identity, message_id, segment_no, pieces_stored, sender_id,
  sender_name, role, timestamp_ms, content, tool_calls, tool_call_id
) VALUES (
  :space_no, :message_no, :session_id, :identity, :message_id, :segment_no, :pieces_stored, :sender_id,
  :sender_name, :role, :timestamp_ms, :content, :tool_calls, :tool_call_id
)
"""
EXTEND_MESSAGE = """
UPDATE engine_messages SET segment_no = :segment_no, pieces_stored = :pieces_stored
WHERE space_no = :space_no AND message_no = :message_no
"""
MESSAGES_OF_SEGMENT = """
SELECT message_no, message_id, sender_id, sender_name, role, content, timestamp_ms, tool_calls, tool_call_id
FROM engine_messages WHERE space_no = :space_no AND segment_no = :segment_no ORDER BY timestamp_ms, message_no
"""
MESSAGE_BY_ID = "SELECT message_no, segment_no FROM engine_messages WHERE space_no = :space_no AND message_id = :id"
MESSAGES = """
SELECT message_id, session_id, sender_id, sender_name, role, timestamp_ms, content, tool_calls, tool_call_id
FROM engine_messages WHERE space_no = :space_no AND message_no >= :first AND message_no < :end ORDER BY message_no
"""

SAVE_TURN = """
INSERT INTO engine_turns (space_no, turn_no, segment_no, message_no, timestamp_ms, speaker, role, label, text)
VALUES (:space_no, :turn_no, :segment_no, :message_no, :timestamp_ms, :speaker, :role, :label, :text)
"""
TURNS_OF_SEGMENT = """
SELECT turn_no, segment_no, message_no, timestamp_ms, speaker, role, label, text
FROM engine_turns WHERE space_no = :space_no AND segment_no = :segment_no ORDER BY turn_no
"""
TURNS_OF_SEGMENTS = """
SELECT turn_no, segment_no, message_no, timestamp_ms, speaker, role, label, text
FROM engine_turns WHERE space_no = :space_no AND segment_no IN (:segment_nos) ORDER BY segment_no, turn_no
"""
TURN_NUMBERS_OF_MESSAGE = """
SELECT turn_no FROM engine_turns WHERE space_no = :space_no AND message_no = :message_no
"""
SEGMENTS_OF_MESSAGE = """
SELECT DISTINCT segment_no FROM engine_turns WHERE space_no = :space_no AND message_no = :message_no
"""
TURN_RANGE = """
SELECT turn_no, segment_no, message_no, timestamp_ms, speaker, role, label, text
FROM engine_turns WHERE space_no = :space_no AND turn_no >= :first AND turn_no < :end ORDER BY turn_no
"""

APPEND_RECORDS = """
INSERT INTO engine_columns (space_no, block_no, records) VALUES (:space_no, :block_no, :records)
ON CONFLICT (space_no, block_no) DO UPDATE SET records = CAST(engine_columns.records || excluded.records AS BLOB)
"""
RECORDS = "SELECT records FROM engine_columns WHERE space_no = :space_no ORDER BY block_no"
RECORDS_BETWEEN = """
SELECT records FROM engine_columns
WHERE space_no = :space_no AND block_no >= :first_block AND block_no <= :last_block ORDER BY block_no
"""
APPEND_POSTINGS = """
INSERT INTO engine_postings (space_no, term, block_no, postings) VALUES (:space_no, :term, :block_no, :postings)
ON CONFLICT (space_no, term, block_no) DO UPDATE
SET postings = CAST(engine_postings.postings || excluded.postings AS BLOB)
"""
POSTINGS = "SELECT postings FROM engine_postings WHERE space_no = :space_no AND term = :term ORDER BY block_no"

BACKLOG = """
SELECT CAST(COALESCE(SUM(turn_count - embedded_count), 0) AS BIGINT) FROM engine_spaces
WHERE embedded_count < turn_count
"""
BACKLOG_SPACES = """
SELECT space_no, embedded_count, turn_count, vector_set, former_count FROM engine_spaces
WHERE embedded_count < turn_count AND (embedding_model IS NULL OR embedding_model = :model)
ORDER BY former_count > 0, turn_count - embedded_count, space_no LIMIT 64
"""
OUTDATED_SPACES = """
SELECT space_no FROM engine_spaces WHERE embedding_model < :model OR embedding_model > :model LIMIT 64
"""
MARK_EMBEDDED = """
UPDATE engine_spaces SET embedded_count = embedded_count + :count, embedding_model = :model
WHERE space_no = :space_no AND vector_set = :set_no AND embedded_count = :expected
  AND (embedding_model IS NULL OR embedding_model = :model)
"""
APPEND_VECTORS = """
INSERT INTO engine_vectors (space_no, set_no, block_no, vectors) VALUES (:space_no, :set_no, :block_no, :vectors)
ON CONFLICT (space_no, set_no, block_no) DO UPDATE
SET vectors = CAST(engine_vectors.vectors || excluded.vectors AS BLOB)
"""
VECTORS_FROM = """
SELECT vectors FROM engine_vectors
WHERE space_no = :space_no AND set_no = :set_no AND block_no >= :first_block ORDER BY block_no
"""
SERVING_SET = """
SELECT COALESCE(former_model, embedding_model),
  CASE WHEN former_model IS NULL THEN embedded_count ELSE former_count END,
  CASE WHEN former_model IS NULL THEN vector_set ELSE former_set END
FROM engine_spaces WHERE space_no = :space_no
"""
VECTOR_SETS = """
SELECT embedding_model, embedded_count, vector_set, former_model, former_count, former_set
FROM engine_spaces WHERE space_no = :space_no
"""
REPLACE_SETS = """
UPDATE engine_spaces SET embedding_model = :model, embedded_count = :count, vector_set = :set_no,
  former_model = :former_model, former_count = :former_count, former_set = :former_set
WHERE space_no = :space_no AND vector_set = :expected_set AND embedded_count = :expected_count
"""
FORGET_FORMER = "UPDATE engine_spaces SET former_model = NULL, former_count = 0 WHERE space_no = :space_no"
KEEP_SET = "DELETE FROM engine_vectors WHERE space_no = :space_no AND set_no <> :set_no"
ANY_FORMER = "SELECT space_no FROM engine_spaces WHERE former_model IS NOT NULL LIMIT 1"
REINDEXED = """
SELECT COALESCE(former_model, embedding_model), CAST(SUM(turn_count) AS BIGINT),
  CAST(SUM(CASE WHEN embedding_model = :model THEN embedded_count ELSE 0 END) AS BIGINT)
FROM engine_spaces GROUP BY COALESCE(former_model, embedding_model)
"""

SAVE_CASE = """
INSERT INTO engine_cases (
  space_no, agent_id, segment_no, skill_no, task_intent, approach, key_insight, quality_score, pattern, timestamp_ms
) VALUES (
  :space_no, :agent_id, :segment_no, :skill_no, :task_intent, :approach, :key_insight, :quality_score, :pattern,
  :timestamp_ms
) ON CONFLICT (space_no, agent_id, segment_no) DO UPDATE SET
  skill_no = excluded.skill_no, task_intent = excluded.task_intent, approach = excluded.approach,
  key_insight = excluded.key_insight, quality_score = excluded.quality_score, pattern = excluded.pattern,
  timestamp_ms = excluded.timestamp_ms
"""
FOUNDING_CASES = """
SELECT skill_no, task_intent FROM engine_cases
WHERE space_no = :space_no AND agent_id = :agent_id AND pattern = :pattern
  AND SUBSTR(pattern, 1, 200) = SUBSTR(CAST(:pattern AS TEXT), 1, 200) AND segment_no = skill_no
  AND segment_no <> :segment_no
ORDER BY segment_no
"""
CASES_OF_AGENT = """
SELECT segment_no, skill_no, task_intent, approach, key_insight, quality_score, pattern, timestamp_ms
FROM engine_cases WHERE space_no = :space_no AND agent_id = :agent_id ORDER BY segment_no
"""

ERASE_SPACE = (
    "DELETE FROM engine_participants WHERE space_no = :space_no",
    "DELETE FROM engine_segments WHERE space_no = :space_no",
    "DELETE FROM engine_messages WHERE space_no = :space_no",
    "DELETE FROM engine_turns WHERE space_no = :space_no",
    "DELETE FROM engine_columns WHERE space_no = :space_no",
    "DELETE FROM engine_postings WHERE space_no = :space_no",
    "DELETE FROM engine_cases WHERE space_no = :space_no",
)
# the row first: who embeds has it locked, and then finds it gone
FORGET_SPACE = (
    "DELETE FROM engine_spaces WHERE space_no = :space_no",
    "DELETE FROM engine_vectors WHERE space_no = :space_no",
    "DELETE FROM engine_space_names WHERE user_id = :user_id AND space_no = :space_no",
)
