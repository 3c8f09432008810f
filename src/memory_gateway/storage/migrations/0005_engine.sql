CREATE TABLE engine_spaces (
  space_no INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id TEXT NOT NULL,
  app_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  message_count INTEGER NOT NULL DEFAULT 0,
  segment_count INTEGER NOT NULL DEFAULT 0,
  turn_count INTEGER NOT NULL DEFAULT 0,
  embedded_count INTEGER NOT NULL DEFAULT 0,
  embedding_model TEXT,
  UNIQUE (user_id, app_id, project_id)
);
CREATE INDEX engine_spaces_model ON engine_spaces (embedding_model) WHERE embedded_count > 0;
CREATE INDEX engine_spaces_backlog ON engine_spaces (space_no) WHERE embedded_count < turn_count;
CREATE TABLE engine_participants (
  space_no INTEGER NOT NULL,
  participant_no INTEGER NOT NULL,
  sender_id TEXT NOT NULL,
  name TEXT NOT NULL,
  PRIMARY KEY (space_no, sender_id)
) WITHOUT ROWID;
CREATE TABLE engine_segments (
  space_no INTEGER NOT NULL,
  segment_no INTEGER NOT NULL,
  session_id TEXT NOT NULL,
  is_open INTEGER NOT NULL,
  created_ms BIGINT NOT NULL,
  updated_ms BIGINT NOT NULL,
  first_ms BIGINT NOT NULL,
  last_ms BIGINT NOT NULL,
  turn_count INTEGER NOT NULL,
  char_count INTEGER NOT NULL,
  last_turn_no INTEGER NOT NULL,
  awaits_tools INTEGER NOT NULL,
  senders TEXT NOT NULL,
  owners TEXT NOT NULL,
  subject TEXT NOT NULL,
  summary TEXT NOT NULL,
  PRIMARY KEY (space_no, segment_no)
);
CREATE INDEX engine_segments_session ON engine_segments (space_no, session_id, segment_no);
CREATE TABLE engine_messages (
  space_no INTEGER NOT NULL,
  message_no INTEGER NOT NULL,
  session_id TEXT NOT NULL,
  identity TEXT NOT NULL,
  message_id TEXT NOT NULL,
  segment_no INTEGER NOT NULL,
  pieces_stored INTEGER NOT NULL,
  sender_id TEXT NOT NULL,
  sender_name TEXT,
  role TEXT NOT NULL,
  timestamp_ms BIGINT NOT NULL,
  content TEXT NOT NULL,
  tool_calls TEXT,
  tool_call_id TEXT,
  PRIMARY KEY (space_no, message_no)
);
CREATE UNIQUE INDEX engine_messages_identity ON engine_messages (space_no, session_id, identity);
CREATE UNIQUE INDEX engine_messages_id ON engine_messages (space_no, message_id);
CREATE INDEX engine_messages_segment ON engine_messages (space_no, segment_no, message_no);
CREATE TABLE engine_turns (
  space_no INTEGER NOT NULL,
  turn_no INTEGER NOT NULL,
  segment_no INTEGER NOT NULL,
  message_no INTEGER NOT NULL,
  timestamp_ms BIGINT NOT NULL,
  speaker TEXT NOT NULL,
  role TEXT NOT NULL,
  label TEXT,
  text TEXT NOT NULL,
  PRIMARY KEY (space_no, turn_no)
);
CREATE INDEX engine_turns_segment ON engine_turns (space_no, segment_no, turn_no);
CREATE INDEX engine_turns_message ON engine_turns (space_no, message_no, turn_no);
CREATE TABLE engine_columns (
  space_no INTEGER NOT NULL,
  block_no INTEGER NOT NULL,
  records BLOB NOT NULL,
  PRIMARY KEY (space_no, block_no)
);
CREATE TABLE engine_postings (
  space_no INTEGER NOT NULL,
  term TEXT NOT NULL,
  block_no INTEGER NOT NULL,
  postings BLOB NOT NULL,
  PRIMARY KEY (space_no, term, block_no)
) WITHOUT ROWID;
CREATE TABLE engine_vectors (
  space_no INTEGER NOT NULL,
  block_no INTEGER NOT NULL,
  vectors BLOB NOT NULL,
  PRIMARY KEY (space_no, block_no)
);
CREATE TABLE engine_cases (
  space_no INTEGER NOT NULL,
  agent_id TEXT NOT NULL,
  segment_no INTEGER NOT NULL,
  skill_no INTEGER NOT NULL,
  task_intent TEXT NOT NULL,
  approach TEXT NOT NULL,
  key_insight TEXT,
  quality_score REAL NOT NULL,
  pattern TEXT NOT NULL,
  timestamp_ms BIGINT NOT NULL,
  PRIMARY KEY (space_no, agent_id, segment_no)
);
CREATE INDEX engine_cases_pattern ON engine_cases (space_no, agent_id, pattern, segment_no);
CREATE INDEX engine_cases_agent ON engine_cases (agent_id, space_no);
