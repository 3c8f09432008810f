CREATE TABLE user_resources (
  id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  app_id TEXT NOT NULL DEFAULT 'default',
  project_id TEXT NOT NULL DEFAULT 'default',
  session_id TEXT NOT NULL,
  name TEXT NOT NULL,
  title TEXT,
  content_type TEXT NOT NULL,
  mime_type TEXT NOT NULL,
  size BIGINT NOT NULL,
  sha256 TEXT NOT NULL,
  stored_name TEXT NOT NULL,
  internal_uri TEXT NOT NULL,
  status TEXT NOT NULL,
  error TEXT,
  created_at TEXT NOT NULL,
  deleted_at TEXT,
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
  id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL,
  app_id TEXT NOT NULL DEFAULT 'default',
  project_id TEXT NOT NULL DEFAULT 'default',
  session_id TEXT NOT NULL,
  resource_id TEXT,
  content_type TEXT NOT NULL,
  name TEXT NOT NULL,
  internal_uri TEXT NOT NULL,
  source TEXT NOT NULL,
  sha256 TEXT,
  created_at TIMESTAMP NOT NULL,
  deleted_at TIMESTAMP
);
CREATE UNIQUE INDEX memory_attachments_mapping
  ON memory_attachments (user_id, session_id, internal_uri);
CREATE INDEX memory_attachments_live
  ON memory_attachments (user_id, session_id, deleted_at);

CREATE TABLE file_intents (
  user_id TEXT NOT NULL,
  folder TEXT NOT NULL,
  expires_at_ms BIGINT NOT NULL,
  claimed INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (user_id, folder)
);
CREATE INDEX file_intents_expiry ON file_intents (expires_at_ms);
