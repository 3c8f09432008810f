CREATE TABLE outbox (
  user_id TEXT NOT NULL,
  id TEXT NOT NULL,
  app_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  messages TEXT,
  tries INTEGER NOT NULL,
  next_at TEXT NOT NULL,
  error TEXT,
  PRIMARY KEY (user_id, id)
);
CREATE INDEX outbox_session ON outbox (user_id, app_id, project_id, session_id, id);
CREATE INDEX outbox_due ON outbox (next_at);
