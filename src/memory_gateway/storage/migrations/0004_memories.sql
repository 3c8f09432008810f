CREATE TABLE session_owners (
  app_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  claimed_at TEXT NOT NULL,
  writers INTEGER NOT NULL,
  stored_at TEXT,
  PRIMARY KEY (app_id, project_id, session_id)
);
CREATE INDEX session_owners_user ON session_owners (user_id, app_id, project_id, session_id);

CREATE TABLE idempotency_keys (
  user_id TEXT NOT NULL,
  endpoint TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  body_hash TEXT NOT NULL,
  holder TEXT NOT NULL,
  held_until TEXT NOT NULL,
  expires_at TEXT NOT NULL,
  status INTEGER,
  reply TEXT,
  PRIMARY KEY (user_id, endpoint, idempotency_key)
);
CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at);

CREATE TABLE shown_memories (
  user_id TEXT NOT NULL,
  app_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  memory_type TEXT NOT NULL,
  memory_id TEXT NOT NULL,
  session_id TEXT,
  snapshot TEXT NOT NULL,
  shown_at TEXT NOT NULL,
  PRIMARY KEY (user_id, app_id, project_id, memory_type, memory_id)
);
CREATE INDEX shown_memories_newest ON shown_memories (user_id, shown_at);

CREATE TABLE memory_tombstones (
  user_id TEXT NOT NULL,
  app_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  memory_type TEXT NOT NULL,
  memory_id TEXT NOT NULL,
  version INTEGER NOT NULL,
  content_hash TEXT NOT NULL,
  created_at TEXT NOT NULL,
  restored_at TEXT,
  PRIMARY KEY (user_id, app_id, project_id, memory_type, memory_id, version)
);
CREATE UNIQUE INDEX memory_tombstones_active
  ON memory_tombstones (user_id, app_id, project_id, memory_type, memory_id) WHERE restored_at IS NULL;

CREATE TABLE memory_overrides (
  user_id TEXT NOT NULL,
  app_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  memory_type TEXT NOT NULL,
  memory_id TEXT NOT NULL,
  version INTEGER NOT NULL,
  session_id TEXT,
  text TEXT NOT NULL,
  reason TEXT,
  created_at TEXT NOT NULL,
  replaced_at TEXT,
  removed_at TEXT,
  PRIMARY KEY (user_id, app_id, project_id, memory_type, memory_id, version)
);
CREATE UNIQUE INDEX memory_overrides_active
  ON memory_overrides (user_id, app_id, project_id, memory_type, memory_id)
  WHERE replaced_at IS NULL AND removed_at IS NULL;
