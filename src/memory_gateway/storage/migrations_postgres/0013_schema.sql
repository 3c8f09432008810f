CREATE TABLE leases (
  name TEXT COLLATE "C" PRIMARY KEY,
  holder TEXT COLLATE "C" NOT NULL,
  expires_at_ms BIGINT NOT NULL
);
CREATE TABLE users (
  user_id TEXT COLLATE "C" PRIMARY KEY,
  folded_id TEXT COLLATE "C" NOT NULL,
  created_at TEXT COLLATE "C" NOT NULL,
  erased_at TEXT COLLATE "C",
  cleared_at TEXT COLLATE "C",
  settled_at TEXT COLLATE "C"
);
CREATE INDEX users_erased ON users (user_id) WHERE erased_at IS NOT NULL;
CREATE TABLE user_keys (
  user_id TEXT COLLATE "C" NOT NULL,
  key_hash TEXT COLLATE "C" NOT NULL,
  created_at TEXT COLLATE "C" NOT NULL,
  stops_at TEXT COLLATE "C",
  closed_at TEXT COLLATE "C",
  PRIMARY KEY (user_id, key_hash)
);
CREATE TABLE user_resources (
  id TEXT COLLATE "C" NOT NULL,
  user_id TEXT COLLATE "C" NOT NULL,
  app_id TEXT COLLATE "C" NOT NULL DEFAULT 'default',
  project_id TEXT COLLATE "C" NOT NULL DEFAULT 'default',
  session_id TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  title TEXT COLLATE "C",
  content_type TEXT COLLATE "C" NOT NULL,
  mime_type TEXT COLLATE "C" NOT NULL,
  size BIGINT NOT NULL,
  sha256 TEXT COLLATE "C" NOT NULL,
  stored_name TEXT COLLATE "C" NOT NULL,
  internal_uri TEXT COLLATE "C" NOT NULL,
  status TEXT COLLATE "C" NOT NULL,
  error TEXT COLLATE "C",
  created_at TEXT COLLATE "C" NOT NULL,
  deleted_at TEXT COLLATE "C",
  PRIMARY KEY (user_id, id)
);
CREATE UNIQUE INDEX user_resources_live_bytes
  ON user_resources (user_id, app_id, project_id, sha256) WHERE deleted_at IS NULL;
CREATE INDEX user_resources_live_page
  ON user_resources (user_id, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX user_resources_deleted_sessions
  ON user_resources (user_id, app_id, project_id, session_id) WHERE deleted_at IS NOT NULL;
CREATE INDEX user_resources_unfinished
  ON user_resources (created_at, id) WHERE status = 'stored' AND deleted_at IS NULL;

CREATE TABLE memory_attachments (
  id TEXT COLLATE "C" NOT NULL,
  user_id TEXT COLLATE "C" NOT NULL,
  app_id TEXT COLLATE "C" NOT NULL DEFAULT 'default',
  project_id TEXT COLLATE "C" NOT NULL DEFAULT 'default',
  session_id TEXT COLLATE "C" NOT NULL,
  resource_id TEXT COLLATE "C",
  content_type TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  internal_uri TEXT COLLATE "C" NOT NULL,
  source TEXT COLLATE "C" NOT NULL,
  sha256 TEXT COLLATE "C",
  created_at TEXT COLLATE "C" NOT NULL,
  deleted_at TEXT COLLATE "C",
  PRIMARY KEY (user_id, id)
);
CREATE UNIQUE INDEX memory_attachments_mapping
  ON memory_attachments (user_id, session_id, MD5(internal_uri));
CREATE INDEX memory_attachments_live
  ON memory_attachments (user_id, session_id, deleted_at);

CREATE TABLE file_intents (
  user_id TEXT COLLATE "C" NOT NULL,
  folder TEXT COLLATE "C" NOT NULL,
  expires_at_ms BIGINT NOT NULL,
  claimed BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (user_id, folder)
);
CREATE INDEX file_intents_expiry ON file_intents (expires_at_ms);
CREATE TABLE session_owners (
  app_id TEXT COLLATE "C" NOT NULL,
  project_id TEXT COLLATE "C" NOT NULL,
  session_id TEXT COLLATE "C" NOT NULL,
  user_id TEXT COLLATE "C" NOT NULL,
  claimed_at TEXT COLLATE "C" NOT NULL,
  writers BIGINT NOT NULL,
  stored_at TEXT COLLATE "C",
  PRIMARY KEY (app_id, project_id, session_id)
);
CREATE INDEX session_owners_user ON session_owners (user_id, app_id, project_id, session_id);

CREATE TABLE idempotency_keys (
  user_id TEXT COLLATE "C" NOT NULL,
  endpoint TEXT COLLATE "C" NOT NULL,
  idempotency_key TEXT COLLATE "C" NOT NULL,
  body_hash TEXT COLLATE "C" NOT NULL,
  holder TEXT COLLATE "C" NOT NULL,
  held_until TEXT COLLATE "C" NOT NULL,
  expires_at TEXT COLLATE "C" NOT NULL,
  status BIGINT,
  reply TEXT COLLATE "C",
  PRIMARY KEY (user_id, endpoint, idempotency_key)
);
CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at);

CREATE TABLE shown_memories (
  user_id TEXT COLLATE "C" NOT NULL,
  app_id TEXT COLLATE "C" NOT NULL,
  project_id TEXT COLLATE "C" NOT NULL,
  memory_type TEXT COLLATE "C" NOT NULL,
  memory_id TEXT COLLATE "C" NOT NULL,
  session_id TEXT COLLATE "C",
  snapshot TEXT COLLATE "C" NOT NULL,
  shown_at TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (user_id, app_id, project_id, memory_type, memory_id)
);
CREATE INDEX shown_memories_newest ON shown_memories (user_id, shown_at);

CREATE TABLE memory_tombstones (
  user_id TEXT COLLATE "C" NOT NULL,
  app_id TEXT COLLATE "C" NOT NULL,
  project_id TEXT COLLATE "C" NOT NULL,
  memory_type TEXT COLLATE "C" NOT NULL,
  memory_id TEXT COLLATE "C" NOT NULL,
  version BIGINT NOT NULL,
  content_hash TEXT COLLATE "C" NOT NULL,
  created_at TEXT COLLATE "C" NOT NULL,
  restored_at TEXT COLLATE "C",
  PRIMARY KEY (user_id, app_id, project_id, memory_type, memory_id, version)
);
CREATE UNIQUE INDEX memory_tombstones_active
  ON memory_tombstones (user_id, app_id, project_id, memory_type, memory_id) WHERE restored_at IS NULL;

CREATE TABLE memory_overrides (
  user_id TEXT COLLATE "C" NOT NULL,
  app_id TEXT COLLATE "C" NOT NULL,
  project_id TEXT COLLATE "C" NOT NULL,
  memory_type TEXT COLLATE "C" NOT NULL,
  memory_id TEXT COLLATE "C" NOT NULL,
  version BIGINT NOT NULL,
  session_id TEXT COLLATE "C",
  text TEXT COLLATE "C" NOT NULL,
  reason TEXT COLLATE "C",
  created_at TEXT COLLATE "C" NOT NULL,
  replaced_at TEXT COLLATE "C",
  removed_at TEXT COLLATE "C",
  PRIMARY KEY (user_id, app_id, project_id, memory_type, memory_id, version)
);
CREATE UNIQUE INDEX memory_overrides_active
  ON memory_overrides (user_id, app_id, project_id, memory_type, memory_id)
  WHERE replaced_at IS NULL AND removed_at IS NULL;
CREATE TABLE engine_spaces (
  space_no BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  user_id TEXT COLLATE "C" NOT NULL,
  app_id TEXT COLLATE "C" NOT NULL,
  project_id TEXT COLLATE "C" NOT NULL,
  message_count BIGINT NOT NULL DEFAULT 0,
  segment_count BIGINT NOT NULL DEFAULT 0,
  turn_count BIGINT NOT NULL DEFAULT 0,
  embedded_count BIGINT NOT NULL DEFAULT 0,
  embedding_model TEXT COLLATE "C"
);
CREATE INDEX engine_spaces_model ON engine_spaces (embedding_model) WHERE embedded_count > 0;
CREATE INDEX engine_spaces_backlog ON engine_spaces (space_no) WHERE embedded_count < turn_count;
CREATE TABLE engine_participants (
  space_no BIGINT NOT NULL,
  participant_no BIGINT NOT NULL,
  sender_id TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (space_no, sender_id)
);
CREATE TABLE engine_segments (
  space_no BIGINT NOT NULL,
  segment_no BIGINT NOT NULL,
  session_id TEXT COLLATE "C" NOT NULL,
  is_open BIGINT NOT NULL,
  created_ms BIGINT NOT NULL,
  updated_ms BIGINT NOT NULL,
  first_ms BIGINT NOT NULL,
  last_ms BIGINT NOT NULL,
  turn_count BIGINT NOT NULL,
  char_count BIGINT NOT NULL,
  last_turn_no BIGINT NOT NULL,
  awaits_tools BIGINT NOT NULL,
  senders TEXT COLLATE "C" NOT NULL,
  owners TEXT COLLATE "C" NOT NULL,
  subject TEXT COLLATE "C" NOT NULL,
  summary TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (space_no, segment_no)
);
CREATE INDEX engine_segments_session ON engine_segments (space_no, session_id, segment_no);
CREATE TABLE engine_messages (
  space_no BIGINT NOT NULL,
  message_no BIGINT NOT NULL,
  session_id TEXT COLLATE "C" NOT NULL,
  identity TEXT COLLATE "C" NOT NULL,
  message_id TEXT COLLATE "C" NOT NULL,
  segment_no BIGINT NOT NULL,
  pieces_stored BIGINT NOT NULL,
  sender_id TEXT COLLATE "C" NOT NULL,
  sender_name TEXT COLLATE "C",
  role TEXT COLLATE "C" NOT NULL,
  timestamp_ms BIGINT NOT NULL,
  content TEXT COLLATE "C" NOT NULL,
  tool_calls TEXT COLLATE "C",
  tool_call_id TEXT COLLATE "C",
  PRIMARY KEY (space_no, message_no)
);
CREATE UNIQUE INDEX engine_messages_identity ON engine_messages (space_no, session_id, identity);
CREATE UNIQUE INDEX engine_messages_id ON engine_messages (space_no, message_id);
CREATE INDEX engine_messages_segment ON engine_messages (space_no, segment_no, message_no);
CREATE TABLE engine_turns (
  space_no BIGINT NOT NULL,
  turn_no BIGINT NOT NULL,
  segment_no BIGINT NOT NULL,
  message_no BIGINT NOT NULL,
  timestamp_ms BIGINT NOT NULL,
  speaker TEXT COLLATE "C" NOT NULL,
  role TEXT COLLATE "C" NOT NULL,
  label TEXT COLLATE "C",
  text TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (space_no, turn_no)
);
CREATE INDEX engine_turns_segment ON engine_turns (space_no, segment_no, turn_no);
CREATE INDEX engine_turns_message ON engine_turns (space_no, message_no, turn_no);
CREATE TABLE engine_columns (
  space_no BIGINT NOT NULL,
  block_no BIGINT NOT NULL,
  records BYTEA NOT NULL,
  PRIMARY KEY (space_no, block_no)
);
CREATE TABLE engine_postings (
  space_no BIGINT NOT NULL,
  term TEXT COLLATE "C" NOT NULL,
  block_no BIGINT NOT NULL,
  postings BYTEA NOT NULL,
  PRIMARY KEY (space_no, term, block_no)
);
CREATE TABLE engine_vectors (
  space_no BIGINT NOT NULL,
  block_no BIGINT NOT NULL,
  vectors BYTEA NOT NULL,
  PRIMARY KEY (space_no, block_no)
);
CREATE TABLE engine_cases (
  space_no BIGINT NOT NULL,
  agent_id TEXT COLLATE "C" NOT NULL,
  segment_no BIGINT NOT NULL,
  skill_no BIGINT NOT NULL,
  task_intent TEXT COLLATE "C" NOT NULL,
  approach TEXT COLLATE "C" NOT NULL,
  key_insight TEXT COLLATE "C",
  quality_score DOUBLE PRECISION NOT NULL,
  pattern TEXT COLLATE "C" NOT NULL,
  timestamp_ms BIGINT NOT NULL,
  PRIMARY KEY (space_no, agent_id, segment_no)
);
CREATE INDEX engine_cases_pattern ON engine_cases (space_no, agent_id, SUBSTR(pattern, 1, 200), segment_no);
CREATE INDEX engine_cases_agent ON engine_cases (agent_id, space_no);
CREATE TABLE audit_log (
  id TEXT COLLATE "C" NOT NULL,
  user_id TEXT COLLATE "C" NOT NULL,
  at TEXT COLLATE "C" NOT NULL,
  action TEXT COLLATE "C" NOT NULL,
  object_type TEXT COLLATE "C" NOT NULL,
  object_id TEXT COLLATE "C" NOT NULL,
  request_id TEXT COLLATE "C",
  PRIMARY KEY (user_id, id)
);
CREATE INDEX audit_log_by_user ON audit_log (user_id, at);
CREATE TABLE memory_users (
  user_no BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  user_id TEXT COLLATE "C" NOT NULL,
  last_entry_no BIGINT NOT NULL DEFAULT 0,
  change_no BIGINT NOT NULL DEFAULT 0,
  unindexed_count BIGINT NOT NULL DEFAULT 0,
  indexed_count BIGINT NOT NULL DEFAULT 0,
  segment_count BIGINT NOT NULL DEFAULT 0,
  signature_stamp BIGINT NOT NULL DEFAULT 0
);
CREATE TABLE memory_entries (
  entry_key BIGINT NOT NULL,
  user_no BIGINT NOT NULL,
  importance BIGINT NOT NULL,
  priority BIGINT NOT NULL,
  category TEXT COLLATE "C" NOT NULL,
  expires_at TEXT COLLATE "C",
  content_hash BIGINT NOT NULL,
  change_no BIGINT NOT NULL,
  bigram_count BIGINT NOT NULL,
  access_count BIGINT NOT NULL,
  last_access TEXT COLLATE "C" NOT NULL,
  demoted_at TEXT COLLATE "C",
  id TEXT COLLATE "C" NOT NULL,
  source TEXT COLLATE "C" NOT NULL,
  created_at TEXT COLLATE "C" NOT NULL,
  updated_at TEXT COLLATE "C" NOT NULL,
  session_id TEXT COLLATE "C" NOT NULL,
  summary_derived BIGINT NOT NULL,
  keywords TEXT COLLATE "C" NOT NULL,
  summary TEXT COLLATE "C" NOT NULL,
  content TEXT COLLATE "C" NOT NULL,
  folded TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (user_no, entry_key)
);
CREATE UNIQUE INDEX memory_entries_id ON memory_entries (id, user_no);
CREATE INDEX memory_entries_order ON memory_entries (user_no, importance, priority, entry_key, expires_at);
CREATE INDEX memory_entries_category ON memory_entries (
  user_no, category, importance, priority, entry_key, expires_at
);
CREATE INDEX memory_entries_expiry ON memory_entries (user_no, expires_at, category, importance)
WHERE expires_at IS NOT NULL;
CREATE TABLE memory_counts (
  user_no BIGINT NOT NULL,
  category TEXT COLLATE "C" NOT NULL,
  importance BIGINT NOT NULL,
  entries BIGINT NOT NULL,
  PRIMARY KEY (user_no, category, importance)
);
CREATE TABLE memory_sentences (
  user_no BIGINT NOT NULL,
  sentence_hash BIGINT NOT NULL,
  entry_no BIGINT NOT NULL,
  PRIMARY KEY (user_no, sentence_hash, entry_no)
);
CREATE TABLE memory_signatures (
  user_no BIGINT NOT NULL,
  level BIGINT NOT NULL,
  chunk_no BIGINT NOT NULL,
  records BYTEA NOT NULL,
  PRIMARY KEY (user_no, level, chunk_no)
);
CREATE TABLE memory_unindexed (
  user_no BIGINT NOT NULL,
  entry_key BIGINT NOT NULL,
  PRIMARY KEY (user_no, entry_key)
);
CREATE TABLE memory_postings (
  user_no BIGINT NOT NULL,
  bucket BIGINT NOT NULL,
  block_no BIGINT NOT NULL,
  postings BYTEA NOT NULL,
  PRIMARY KEY (user_no, bucket, block_no)
);
CREATE TABLE thinking_logs (
  id TEXT COLLATE "C" NOT NULL,
  shard_key BIGINT NOT NULL,
  user_id TEXT COLLATE "C" NOT NULL,
  content TEXT COLLATE "C" NOT NULL,
  tool_calls TEXT COLLATE "C" NOT NULL,
  tool_call_count BIGINT NOT NULL,
  content_length BIGINT NOT NULL,
  created_at TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (id, shard_key)
);
CREATE INDEX thinking_logs_newest
  ON thinking_logs (shard_key, user_id, created_at, id, tool_call_count, content_length);
CREATE TABLE sent_messages (
  user_id TEXT COLLATE "C" NOT NULL,
  app_id TEXT COLLATE "C" NOT NULL,
  project_id TEXT COLLATE "C" NOT NULL,
  session_id TEXT COLLATE "C" NOT NULL,
  digest TEXT COLLATE "C" NOT NULL,
  timestamp_ms BIGINT NOT NULL,
  place BIGINT NOT NULL,
  state TEXT COLLATE "C" NOT NULL,
  sent_at TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (user_id, app_id, project_id, session_id, digest)
);
CREATE UNIQUE INDEX sent_messages_slot
  ON sent_messages (user_id, app_id, project_id, session_id, timestamp_ms, place);
CREATE INDEX sent_messages_age ON sent_messages (user_id, sent_at);
CREATE TABLE outbox (
  user_id TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  app_id TEXT COLLATE "C" NOT NULL,
  project_id TEXT COLLATE "C" NOT NULL,
  session_id TEXT COLLATE "C" NOT NULL,
  messages TEXT COLLATE "C",
  tries BIGINT NOT NULL,
  next_at TEXT COLLATE "C" NOT NULL,
  error TEXT COLLATE "C",
  PRIMARY KEY (user_id, id)
);
CREATE INDEX outbox_session ON outbox (user_id, app_id, project_id, session_id, id);
CREATE INDEX outbox_due ON outbox (next_at);
CREATE TABLE user_names (
  folded_id TEXT COLLATE "C" PRIMARY KEY,
  user_id TEXT COLLATE "C" NOT NULL
);
CREATE TABLE engine_space_names (
  user_id TEXT COLLATE "C" NOT NULL,
  app_id TEXT COLLATE "C" NOT NULL,
  project_id TEXT COLLATE "C" NOT NULL,
  space_no BIGINT NOT NULL,
  PRIMARY KEY (user_id, app_id, project_id)
);
CREATE TABLE memory_user_numbers (
  user_id TEXT COLLATE "C" PRIMARY KEY,
  user_no BIGINT NOT NULL
);
ALTER TABLE engine_columns ALTER COLUMN records SET STORAGE EXTERNAL;
ALTER TABLE engine_vectors ALTER COLUMN vectors SET STORAGE EXTERNAL;
ALTER TABLE memory_signatures ALTER COLUMN records SET STORAGE EXTERNAL;
