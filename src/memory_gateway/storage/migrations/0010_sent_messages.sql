CREATE TABLE sent_messages (
  user_id TEXT NOT NULL,
  app_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  digest TEXT NOT NULL,
  timestamp_ms BIGINT NOT NULL,
  place INTEGER NOT NULL,
  state TEXT NOT NULL,
  sent_at TEXT NOT NULL,
  PRIMARY KEY (user_id, app_id, project_id, session_id, digest)
);
CREATE UNIQUE INDEX sent_messages_slot
  ON sent_messages (user_id, app_id, project_id, session_id, timestamp_ms, place);
CREATE INDEX sent_messages_age ON sent_messages (user_id, sent_at);
